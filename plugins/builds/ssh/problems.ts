import { problemTable } from 'busbar/sdk'

/** Of what is read over SSH, and the keys for it. */
export const sshProblems = problemTable({
  deployKeyMissing: [
    404,
    'E_DEPLOY_KEY_MISSING',
    'the application has no deploy key',
    'make one with POST …/deploy-key'
  ],
  noDeployKey: [
    409,
    'E_SOURCE_NO_KEY',
    'the repository {repo} is read over SSH, and the application has no deploy key',
    'make one (POST …/deploy-key) and add its public key as a deploy key of the repository'
  ],
  keyRefused: [
    409,
    'E_SOURCE_KEY_REFUSED',
    'the host of {repo} refused the deploy key of the application',
    'add this public key as a deploy key of the repository (to read is enough), and check the user in the address: {key}'
  ],
  hostKeyChanged: [
    409,
    'E_SOURCE_HOST_KEY',
    'the host {host} of {repo} has shown the key {shown}, and was known by {known}: somebody may be in between. Compare it with what the host publishes; if it has a new key, have the known one forgotten (DELETE …/host-keys) and deploy again'
  ],
  sshRepositoryMissing: [
    409,
    'E_SOURCE_NOT_FOUND',
    'the repository {repo} was not found',
    'check the address, and that this public key is a deploy key of that repository and of no other: {key}'
  ],
  sshNoUser: [
    503,
    'E_SOURCE_SSH_USER',
    'ssh does not run for the uid of the platform ({reason})',
    'give that uid a user on this machine; in containers, build the image of the platform with BUSBAR_UID (docker compose up -d --build)'
  ],
  sshMissing: [
    503,
    'E_SOURCE_SSH_MISSING',
    'the repository is read over SSH, and there is no ssh program on this machine ({reason})',
    'install it (Debian: openssh-client), or give the https address of the repository'
  ]
})
