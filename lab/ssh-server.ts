import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { bounded } from 'busbar/sdk'
import type { Test } from 'tap'
import { skipWithout } from './requirements.js'

const run = promisify(execFile)
// It starts itself anew for each connection, by this name.
const program = '/usr/sbin/sshd'

interface SshServer {
  /** Its users are those of the machine: this one. */
  readonly user: string
  readonly host: string
  readonly port: number
  /** As `known_hosts` has it: `ssh-ed25519 AAAA…`. */
  hostKey(): Promise<string>
  /** Lets the owner of a key read repositories by git, and do nothing else; `message` is said to them first. */
  allow(publicKey: string, message?: string): Promise<void>
  /** Ends, and begins anew with another key of its own. */
  changeHostKey(): Promise<void>
  /** Ends for good, before the end of the test. */
  close(): Promise<void>
}

/**
 * Call it first in every test that needs the real server: without the program `sshd` the test is skipped, with
 * `CI=true` it fails.
 */
export async function requireSshServer(t: Pick<Test, 'plan'>): Promise<boolean> {
  const isThere = await run('test', ['-x', program]).then(
    () => true,
    () => false
  )
  if (isThere) return true
  const reason = `${program} not found (Debian: apt-get install openssh-server)`
  return skipWithout(t, { what: 'an SSH server', reason })
}

/** The real server, for keys that are allowed, with keys of its own; gone after the test. */
export async function startSshServer(
  t: Pick<Test, 'teardown'>,
  { host = '127.0.0.1' }: { readonly host?: string } = {}
): Promise<SshServer> {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-ssh-'))
  const { username: user, uid } = userInfo()
  const port = await freePort(host)
  // Where it leaves root's rights behind; the package makes it only when a service of the system starts it.
  if (uid === 0) await mkdir('/run/sshd', { recursive: true })
  const file = (name: string): string => join(folder, name)
  await writeFile(file('authorized_keys'), '')
  await writeFile(
    file('config'),
    [
      `ListenAddress ${host}:${port}`,
      `HostKey ${file('host-key')}`,
      `AuthorizedKeysFile ${file('authorized_keys')}`,
      'AuthenticationMethods publickey',
      'PermitRootLogin forced-commands-only',
      'StrictModes no',
      'UsePAM no',
      'AcceptEnv GIT_PROTOCOL',
      'PidFile none',
      'LogLevel ERROR',
      ''
    ].join('\n')
  )
  let end = async (): Promise<void> => {}
  const start = async (): Promise<void> => {
    for (const name of ['host-key', 'host-key.pub']) await rm(file(name), { force: true })
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', file('host-key')])
    const server = spawn(program, ['-D', '-e', '-f', file('config')], { stdio: ['ignore', 'ignore', 'pipe'] })
    const ended = new Promise<void>(resolve => server.once('exit', () => resolve()))
    let said = ''
    server.stderr.on('data', chunk => {
      said = (said + String(chunk)).slice(-2000)
    })
    end = async () => {
      server.kill()
      await bounded(async () => await ended, { ms: 30_000, what: 'sshd, which was to end,' })
    }
    for (let tries = 0; !(await answers(host, port)); tries++) {
      if (server.exitCode !== null || tries > 300) throw new Error(`sshd does not serve: ${said}`)
      await pause(100)
    }
  }
  await start()
  t.teardown(async () => {
    await end()
    await rm(folder, { recursive: true, force: true })
  })
  return {
    user,
    host,
    port,
    hostKey: async () =>
      (await readFile(file('host-key.pub'), 'utf8')).split(' ').slice(0, 2).join(' ').trim(),
    allow: async (publicKey, message) => {
      if (message !== undefined) await writeFile(file('message'), message)
      const first = message === undefined ? '' : `cat ${file('message')} >&2; `
      await writeFile(
        file('authorized_keys'),
        `restrict,command="${first}git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"" ${publicKey}\n`,
        { flag: 'a' }
      )
    },
    changeHostKey: async () => {
      await end()
      await start()
    },
    close: async () => await end()
  }
}

async function freePort(host: string): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, host, resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

const answers = async (host: string, port: number): Promise<boolean> =>
  await new Promise(resolve => {
    const socket = connect({ host, port, timeout: 5000 })
    const settle = (isAnswering: boolean) => (): void => {
      socket.destroy()
      resolve(isAnswering)
    }
    socket.once('data', settle(true)).once('error', settle(false)).once('timeout', settle(false))
  })
