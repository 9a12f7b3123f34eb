import type { EngineCommand, ProgramBuild } from '../api.js'

const variable = 'BUSBAR_SSH_KEY'

/**
 * A client reads the key from a file, and serves it to the steps that mount it, which can have it sign and never see it. That
 * file is a pipe: the key comes by a variable, as secrets do, lies on no disk, and is in the environment of nothing that is left.
 */
const script = `exec 3<<KEY
$${variable}
KEY
unset ${variable}
exec "$@"`

/** What tells the client of it. */
export const sshFlags = ({ sshKey }: Pick<ProgramBuild, 'sshKey'>): readonly string[] =>
  sshKey === undefined ? [] : ['--ssh', 'default=/dev/fd/3']

/** The command with the key where its flags say it is. */
export const withKey = (
  { argv, env }: EngineCommand,
  { sshKey }: Pick<ProgramBuild, 'sshKey'>
): EngineCommand =>
  sshKey === undefined
    ? { argv, env }
    : { argv: ['sh', '-c', script, 'key', ...argv], env: { ...env, [variable]: sshKey } }
