import type { LookupAddress } from 'node:dns'
import type { Exec, ExecOptions, ExecResult } from 'busbar/sdk'
import { problems } from '../problems.js'
import { localProblem } from './git-failure.js'
import type { HttpAddress } from './repository-address.js'

type GitSetting = readonly [key: string, value: string]

/** What git may do with an untrusted repository: run nothing of it, prompt for nothing. */
const settings: readonly GitSetting[] = [
  ['protocol.allow', 'never'],
  ['http.followRedirects', 'false'],
  ['http.lowSpeedLimit', '1000'],
  ['credential.helper', ''],
  ['core.askPass', ''],
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  // Always one growing file, whose size can be watched.
  ['fetch.unpackLimit', '1'],
  // Larger files go through in pieces instead of being held.
  ['core.bigFileThreshold', '32m'],
  // A pack is looked at in parts: the space for all of git is limited, and a part counts whole.
  ['core.packedGitWindowSize', '32m'],
  ['core.packedGitLimit', '256m'],
  // Paths are told as they are: their length counts.
  ['core.quotePath', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false']
]

/** What bounds the work for one repository. */
export interface GitLimits {
  /** Of the fetched pack, and of the files in it. */
  readonly checkoutBytes: number
  /** How long a fetch may take. */
  readonly fetchMs: number
  /** How long a host may send next to nothing. */
  readonly silenceSeconds: number
}

const leastMemoryBytes = 64 * 2 ** 20
const mostMemoryBytes = 512 * 2 ** 20

/** The largest piece of memory that git takes: a host can send an answer without end, or a delta that grows to anything. */
const memoryLimit = ({ checkoutBytes }: GitLimits): number =>
  Math.min(mostMemoryBytes, Math.max(leastMemoryBytes, checkoutBytes))

const leastSpaceBytes = 384 * 2 ** 20

/** What one process of git may have in all: very many small pieces make a lot, too, and a host can name branches without end. */
const spaceLimit = (limits: GitLimits): number => Math.max(leastSpaceBytes, 4 * memoryLimit(limits))

/** Both, for a reader. */
export const inMebibytes = (
  limits: GitLimits
): { readonly memoryMib: number; readonly spaceMib: number } => ({
  memoryMib: Math.round(memoryLimit(limits) / 2 ** 20),
  spaceMib: Math.round(spaceLimit(limits) / 2 ** 20)
})

/** By what git reaches a repository; nothing else is open to it. */
export interface Transport {
  readonly protocols: readonly ('http' | 'https' | 'ssh')[]
  readonly settings: readonly GitSetting[]
  readonly variables: Readonly<Record<string, string>>
}

/** How the host of one repository is talked to over HTTP. */
export interface Connection {
  readonly address: HttpAddress
  /** The addresses that were checked: git connects to these and asks no name server again. */
  readonly pinned: readonly LookupAddress[]
  /** `user:password`. */
  readonly credentials: string | null
}

/** Works on files alone. */
const noTransport: Transport = { protocols: [], settings: [], variables: {} }

/** The environment of a git process. */
export function gitEnvironment(
  home: string,
  limits: GitLimits,
  transport: Transport = noTransport
): Record<string, string> {
  const { protocols } = transport
  const all = [
    ...settings,
    ...protocols.map(name => [`protocol.${name}.allow`, 'always'] as const),
    ['http.lowSpeedTime', String(limits.silenceSeconds)] as const,
    ...transport.settings
  ]
  return {
    HOME: home,
    XDG_CONFIG_HOME: home,
    LANG: 'C',
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: protocols.join(':'),
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_ALLOC_LIMIT: String(memoryLimit(limits)),
    // Each thread would set 64 MiB of the space aside for itself.
    MALLOC_ARENA_MAX: '2',
    ...transport.variables,
    GIT_CONFIG_COUNT: String(all.length),
    ...Object.fromEntries(
      all.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value]
      ])
    )
  }
}

/**
 * Credentials are only in the environment: not in an argument, which other users of the machine can read, and not in a
 * file. They are bound to the host, so no other one is ever sent them.
 */
export function httpTransport({ address, pinned, credentials }: Connection): Transport {
  const { origin, host, port } = address
  const addresses = pinned.map(({ address: text, family }) => (family === 6 ? `[${text}]` : text))
  const settings: GitSetting[] = [
    ...(addresses.length === 0
      ? []
      : [['http.curloptResolve', `${host}:${port}:${addresses.join(',')}`] as const]),
    ...(credentials === null
      ? []
      : [[`http.${origin}/.extraHeader`, `Authorization: ${basicAuthorization(credentials)}`] as const])
  ]
  return { protocols: ['http', 'https'], settings, variables: {} }
}

export const basicAuthorization = (credentials: string): string =>
  `Basic ${Buffer.from(credentials).toString('base64')}`

/** Settings by environment came with 2.31, the pinning of addresses with 2.37. */
export async function checkGitVersion(exec: Exec, mustPin: boolean): Promise<void> {
  const { stdout } = await exec.run(['git', 'version'], { timeoutMs: 10_000 })
  const [, major = '0', minor = '0'] = /^git version (\d+)\.(\d+)/.exec(stdout) ?? []
  const number = Number(major) * 1000 + Number(minor)
  if (number < 2031) throw problems.gitTooOld({ version: `${major}.${minor}`, wanted: '2.31', why: '' })
  if (mustPin && number < 2037) {
    throw problems.gitTooOld({
      version: `${major}.${minor}`,
      wanted: '2.37',
      why: ' to keep private hosts out; or set GIT_PRIVATE_HOSTS=allow if only you may deploy'
    })
  }
}

/** Sets the limit, in KiB, where the system has one (macOS has none), and becomes git. */
const limited = 'ulimit -v "$1" 2>/dev/null; shift; exec git "$@"'

/** Runs git; when it ended because `signal` aborted, the reason of that is thrown. */
export async function runGit(
  exec: Exec,
  args: readonly string[],
  { limits, ...options }: ExecOptions & { readonly signal: AbortSignal; readonly limits: GitLimits }
): Promise<ExecResult> {
  try {
    const kibibytes = Math.floor(spaceLimit(limits) / 1024)
    return await exec.run(['sh', '-c', limited, 'git', String(kibibytes), ...args], options)
  } catch (error) {
    options.signal.throwIfAborted()
    throw error
  }
}

/** The output of a git command that works on files alone. */
export async function localGit(
  exec: Exec,
  args: readonly string[],
  options: {
    cwd: string
    home: string
    limits: GitLimits
    signal: AbortSignal
    repo: string
    onLine?: (line: string) => void
  }
): Promise<ExecResult> {
  const result = await runGit(exec, args, {
    cwd: options.cwd,
    limits: options.limits,
    env: gitEnvironment(options.home, options.limits),
    timeoutMs: 300_000,
    maxOutputBytes: 64 * 1024,
    signal: options.signal,
    onLine:
      options.onLine === undefined
        ? undefined
        : (line, stream) => {
            if (stream === 'stdout') options.onLine?.(line)
          }
  })
  if (result.exitCode !== 0)
    throw localProblem(
      result.stderr,
      { repo: options.repo, ...inMebibytes(options.limits) },
      `git ${args[0] ?? ''} ended with ${result.exitCode ?? result.signal ?? 'nothing'}`
    )
  return result
}
