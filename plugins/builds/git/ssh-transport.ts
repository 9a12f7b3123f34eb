import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Exec } from 'busbar/sdk'
import { type HostKey, hostName, knownHostsLine, readKnownHosts } from '../ssh/host-key.js'
import { sshProblems } from '../ssh/problems.js'
import type { Transport } from './git-command.js'
import type { SshAddress } from './repository-address.js'

/**
 * What ssh may do: reach one host at one address with one key, and nothing that the machine has set up for people. What
 * differs between hosts comes by variables, so that the shell by which git runs this never sees foreign text as its own.
 */
const options = [
  'BatchMode=yes',
  'IdentitiesOnly=yes',
  'IdentityAgent=none',
  'IdentityFile=$BUSBAR_SSH_FOLDER/key',
  'AddKeysToAgent=no',
  'PreferredAuthentications=publickey',
  // Not looked up again: what is connected to is what was checked.
  'HostName=$BUSBAR_SSH_ADDRESS',
  'HostKeyAlias=$BUSBAR_SSH_HOST',
  'CanonicalizeHostname=no',
  'ProxyCommand=none',
  'StrictHostKeyChecking=$BUSBAR_SSH_STRICT',
  'UserKnownHostsFile=$BUSBAR_SSH_FOLDER/known_hosts',
  'GlobalKnownHostsFile=/dev/null',
  'HashKnownHosts=no',
  'CheckHostIP=no',
  'UpdateHostKeys=no',
  'VerifyHostKeyDNS=no',
  'NoHostAuthenticationForLocalhost=no',
  'ForwardAgent=no',
  'ForwardX11=no',
  'ClearAllForwardings=yes',
  'Tunnel=no',
  'PermitLocalCommand=no',
  'ControlMaster=no',
  'ControlPath=none',
  'ConnectTimeout=20',
  'ConnectionAttempts=1',
  'ServerAliveInterval=15',
  'ServerAliveCountMax=4',
  // What a host says before it has let the key in is not shown.
  'LogLevel=ERROR'
]
const command = ['ssh', '-F', '/dev/null', ...options.flatMap(option => ['-o', `"${option}"`])].join(' ')

/** What ssh needs in files, and what it has written into them. */
export interface SshFiles {
  /** Of git for the host at one of its addresses. */
  transport(address: string): Transport
  /** The key by which the host has proven itself, where none was known before; undefined as long as it has not. */
  hostKey(): Promise<HostKey | undefined>
}

interface SshAccess {
  readonly address: SshAddress
  readonly privateKey: string
  /** As it is known already: `ssh-ed25519 AAAA…`. */
  readonly knownKey: string | undefined
  /** Where git runs. */
  readonly directory: string
  /** A folder of the platform, in which one for these files is made. */
  readonly home: string
}

/** The files are there for as long as `use` takes, readable by the platform alone. */
export async function withSshFiles<T>(
  { address, privateKey, knownKey, directory, home }: SshAccess,
  use: (files: SshFiles) => Promise<T>
): Promise<T> {
  const folder = join(home, 'ssh')
  const knownHosts = join(folder, 'known_hosts')
  const host = hostName(address)
  try {
    await mkdir(folder, { mode: 0o700 })
    await writeFile(join(folder, 'key'), privateKey, { mode: 0o600, flag: 'wx' })
    await writeFile(knownHosts, knownKey === undefined ? '' : knownHostsLine({ host, key: knownKey }), {
      mode: 0o600,
      flag: 'wx'
    })
    return await use({
      transport: checked => ({
        protocols: ['ssh'],
        settings: [],
        variables: {
          GIT_SSH_COMMAND: command,
          GIT_SSH_VARIANT: 'ssh',
          // From where git runs: ssh reads blanks, quotes and % in a path in ways of its own, and what is above is not ours to name.
          BUSBAR_SSH_FOLDER: relative(directory, folder),
          BUSBAR_SSH_ADDRESS: checked,
          BUSBAR_SSH_HOST: host,
          BUSBAR_SSH_STRICT: knownKey === undefined ? 'accept-new' : 'yes'
        }
      }),
      hostKey: async () => readKnownHosts(await readFile(knownHosts, 'utf8'), host)
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The system's own is used; 7.6 was the first that takes a new host without asking, in 2017. */
export async function checkSsh(exec: Exec): Promise<void> {
  await exec.run(['ssh', '-V'], { timeoutMs: 10_000 }).catch((error: unknown) => {
    throw sshProblems.sshMissing({ reason: error instanceof Error ? error.message : String(error) })
  })
}
