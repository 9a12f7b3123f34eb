import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  applicationGone: [404, 'E_APPLICATION_NOT_FOUND', 'the application {applicationId} does not exist here'],
  noContainer: [
    409,
    'E_TERMINAL_NO_CONTAINER',
    'the application has no container to open a terminal in',
    'deploy it first'
  ],
  notRunning: [
    409,
    'E_TERMINAL_NOT_RUNNING',
    'the container of the application is {status}, and a terminal needs one that runs',
    'start the application'
  ],
  limitReached: [429, 'E_TERMINAL_LIMIT', 'terminal session limit reached'],
  noShell: [
    502,
    'E_TERMINAL_NO_SHELL',
    'the container has no shell (sh), which a terminal needs ({reason})',
    'build the image from a base with one, such as alpine or debian, or its -debug variant, and deploy it'
  ],
  shellMissing: [
    502,
    'E_TERMINAL_NO_SHELL',
    'the container has no {shell}',
    'ask for sh, or install {shell} in the image and deploy it'
  ],
  notStarted: [502, 'E_TERMINAL_NOT_STARTED', 'no shell could be started in the container: {reason}'],
  notFound: [404, 'E_TERMINAL_NOT_FOUND', 'there is no such terminal session, or it is not yours'],
  attached: [
    409,
    'E_TERMINAL_ATTACHED',
    'somebody is attached to this terminal session',
    'close the other socket, or make another session'
  ],
  elsewhere: [
    409,
    'E_TERMINAL_ATTACHED',
    'this terminal session goes on in another process of the platform',
    'make another session, or have requests of one client lead to the same process'
  ]
})
