import { cutMark, cutText, type Problem } from 'busbar/sdk'
import { problems } from '../problems.js'

export interface Attempt {
  readonly repo: string
  readonly branch: string | null
  readonly hasCredentials: boolean
  /** Of memory that git may take at once. */
  readonly memoryMib: number
  /** And in all. */
  readonly spaceMib: number
}

type Row = readonly [words: RegExp | LineWith, make: (attempt: Attempt, reason: string) => Problem]

/** A line with this word, and one of these anywhere behind it. As one pattern it would begin again at each word. */
interface LineWith {
  readonly word: string
  readonly followedBy: RegExp
}

const outOfMemory = /out of memory|cannot allocate memory|mmap failed|unable to create thread/i
const diskFull = /no space left on device|disk quota exceeded/i

const table: readonly Row[] = [
  [
    /couldn't find remote ref|Remote branch \S+ not found/i,
    ({ repo, branch }) =>
      branch === null ? problems.empty({ repo }) : problems.branchMissing({ repo, branch })
  ],
  [
    /could not read (Username|Password)|Authentication failed|returned error: 401/i,
    ({ repo, hasCredentials }) =>
      hasCredentials ? problems.credentialsRefused({ repo }) : problems.needsCredentials({ repo })
  ],
  [/returned error: 403/i, ({ repo }) => problems.forbidden({ repo })],
  [/repository \S+ not found|returned error: (404|410)/i, ({ repo }) => problems.repositoryMissing({ repo })],
  [
    /not valid: is this a git repository|does not appear to be a git repository/i,
    ({ repo }) => problems.empty({ repo })
  ],
  [/could not resolve host/i, ({ repo }, reason) => problems.unreachable({ repo, reason })],
  [/certificate|SSL|TLS|handshake/i, ({ repo }, reason) => problems.tls({ repo, reason })],
  [/attempting to allocate/i, ({ repo, memoryMib }) => problems.tooMuchMemory({ repo, limit: memoryMib })],
  [outOfMemory, ({ repo, spaceMib }) => problems.tooMuchMemory({ repo, limit: spaceMib })],
  [diskFull, ({ repo }, reason) => problems.diskFull({ repo, reason })],
  [/bad (object|pack header)|early EOF|index-pack|inflate/i, damaged],
  [{ word: 'pack ', followedBy: /corrupt|mismatch|truncated/i }, damaged],
  [/protocol error|bad line length|invalid (server|ls-refs) response/i, notGit],
  [{ word: 'expected ', followedBy: /flush|packet|got/i }, notGit],
  [
    /failed to connect|couldn't connect|connection (timed out|refused|reset)|operation (too slow|timed out)|empty reply|recv failure|send failure|returned error: 5\d\d/i,
    ({ repo }, reason) => problems.unreachable({ repo, reason })
  ],
  [/RPC failed|unexpected disconnect|hung up/i, damaged]
]

function damaged({ repo }: Attempt, reason: string): Problem {
  return problems.damaged({ repo, reason })
}
function notGit({ repo }: Attempt, reason: string): Problem {
  return problems.notGit({ repo, reason })
}

/** What a host lets git print can be of any length; what git itself has to say stands at the end, in short lines. */
const mostLines = 1000
const longestLine = 4096

export const tellingLines = (stderr: string): string[] =>
  stderr
    .split('\n')
    .slice(-mostLines)
    .map(line => line.slice(0, longestLine))

function isSaid(words: RegExp | LineWith, lines: readonly string[]): boolean {
  if (words instanceof RegExp) return lines.some(line => words.test(line))
  return lines.some(line => {
    const at = line.toLowerCase().indexOf(words.word)
    return at >= 0 && words.followedBy.test(line.slice(at + words.word.length))
  })
}

/** What git says on stderr when a fetch fails, as a problem with a remedy. */
export function gitProblem(stderr: string, attempt: Attempt): Problem {
  const reason = reasonIn(stderr)
  const lines = tellingLines(stderr)
  const row = table.find(([words]) => isSaid(words, lines))
  return row === undefined ? problems.gitFailed({ repo: attempt.repo, reason }) : row[1](attempt, reason)
}

/** What git says on stderr when it fails on files that it has fetched. */
export function localProblem(
  stderr: string,
  { repo, memoryMib, spaceMib }: Pick<Attempt, 'repo' | 'memoryMib' | 'spaceMib'>,
  otherwise: string
): Problem {
  const reason = stderr.trim() === '' ? otherwise : reasonIn(stderr)
  if (/attempting to allocate/i.test(stderr)) return problems.tooMuchMemory({ repo, limit: memoryMib })
  if (outOfMemory.test(stderr)) return problems.tooMuchMemory({ repo, limit: spaceMib })
  if (diskFull.test(stderr)) return problems.diskFull({ repo, reason })
  if (/file name too long|invalid path|cannot create directory|unable to create file/i.test(stderr))
    return problems.badFileName({ repo, reason: firstError(stderr) })
  return problems.gitFailed({ repo, reason })
}

/** True when the server answered with a redirect, which git was told not to follow. */
export const isRedirect = (stderr: string): boolean => /returned error: 30[1278]/.test(stderr)

/** True when the server does not hand out a commit by its name. */
export const isUnadvertised = (stderr: string): boolean =>
  /not our ref|unadvertised object|bad object|no such remote ref/i.test(stderr)

/** Of many files that cannot be made, the first is enough. */
const firstError = (stderr: string): string =>
  printable(/^(?:fatal|error): (.*)$/m.exec(stderr)?.[1] ?? reasonIn(stderr))

/** A name in it may be as long as its writer liked. */
const printable = (text: string): string =>
  text.length > 300 ? text.slice(0, 150) + cutMark + text.slice(-130) : text

function reasonIn(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  const last = lines.findLast(line => /^(fatal|error): /.test(line)) ?? lines.at(-1) ?? 'git gave no reason'
  return cutText(last.replace(/^(fatal|error): /, '').replace(/^unable to access '[^']*': /, ''), 500)
}
