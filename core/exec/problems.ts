import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [503, 'E_EXEC_NOT_FOUND', '{program} was not found on the PATH of the platform: {remedy}'],
  noDirectory: [500, 'E_EXEC_DIRECTORY', '{program} cannot start in {cwd}: the directory does not exist'],
  notExecutable: [
    503,
    'E_EXEC_DENIED',
    '{program} may not be executed by the user the platform runs as',
    'check its permissions'
  ],
  badArgument: [400, 'E_EXEC_ARGUMENT', 'an argument of {program} contains a zero byte'],
  failed: [500, 'E_EXEC_START', '{program} did not start: {reason}']
})

const remedies: Readonly<Record<string, string>> = {
  git: 'install git (Debian and Ubuntu: apt-get install git; Alpine: apk add git; macOS: xcode-select --install)',
  docker: 'install the Docker command line (https://docs.docker.com/engine/install)',
  ssh: 'install an SSH client (Debian and Ubuntu: apt-get install openssh-client; Alpine: apk add openssh-client)'
}

export const remedyFor = (program: string) =>
  remedies[program] ?? `install ${program} and start the platform again`
