import { cutText, type Problem } from 'busbar/sdk'
import { problems } from '../problems.js'
import { sshProblems } from '../ssh/problems.js'
import { type Attempt, gitProblem, tellingLines } from './git-failure.js'

interface SshAttempt extends Attempt {
  /** As it is called in `known_hosts`. */
  readonly host: string
  readonly publicKey: string
  /** By what the host was known; undefined where it was not. */
  readonly knownFingerprint: string | undefined
}

type Row = readonly [words: RegExp, make: (attempt: SshAttempt, line: string) => Problem]

const changedKey =
  /^(?:@ +WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No \S+ host key is known for )/
const unconnected =
  /^(?:ssh: connect to host |ssh: Could not resolve |ssh_exchange_identification: |kex_exchange_identification: |Connection (?:closed|reset|timed out)|Connection to \S+ (?:closed|timed out)|banner exchange: |Bad remote protocol version |Timeout, server )/
const noAddress = /^ssh: connect to host /

/** Each says a line of ssh, or of the program that the host runs for it. */
const table: readonly Row[] = [
  [
    /^\S+: Permission denied \(|^Permission denied \(|^(?:Received disconnect from .*)?Too many authentication failures|^No supported authentication methods/,
    ({ repo, publicKey }) => sshProblems.keyRefused({ repo, key: publicKey })
  ],
  [/^No user exists for uid /, (_attempt, reason) => sshProblems.sshNoUser({ reason })],
  [unconnected, ({ repo }, reason) => problems.unreachable({ repo, reason })],
  [
    /does not appear to be a git repository|repository not found|^(?:\w{1,20}: ){0,3}repository \S{1,300} (?:not found|does not exist)|project you were looking for could not be found/i,
    ({ repo, publicKey }) => sshProblems.sshRepositoryMissing({ repo, key: publicKey })
  ]
]

/** What ssh and git say on stderr when a fetch fails, as a problem with a remedy. */
export function sshProblem(stderr: string, attempt: SshAttempt): Problem {
  const lines = tellingLines(stderr)
  const { repo, host, knownFingerprint } = attempt
  // Of a host that was not known there is nothing that could have changed.
  if (knownFingerprint !== undefined && lines.some(line => changedKey.test(line)))
    return sshProblems.hostKeyChanged({
      repo,
      host,
      known: knownFingerprint,
      shown: shownFingerprint(lines) ?? 'one of another kind'
    })
  for (const [words, make] of table) {
    const line = lines.find(text => words.test(text))
    if (line !== undefined) return make(attempt, cutText(line.trim(), 500))
  }
  const problem = gitProblem(stderr, attempt)
  if (problem.code !== 'E_SOURCE_GIT') return problem
  const told = lines.map(line => line.trim()).findLast(line => line !== '' && !sayNothing.test(line))
  return told === undefined ? problem : problems.gitFailed({ repo, reason: cutText(told, 500) })
}

/** What git says whenever ssh has failed. */
const sayNothing =
  /^fatal: Could not read from remote repository|^Please make sure you have the correct access rights|^and the repository exists/

/** Whether the next address of the host may be tried: at this one nobody is. */
export const isUnconnected = (stderr: string): boolean =>
  tellingLines(stderr).some(line => noAddress.test(line))

const shownFingerprint = (lines: readonly string[]): string | undefined =>
  lines
    .map(line => /^SHA256:[A-Za-z0-9+/]{43}(?=\.?$)/.exec(line.trim())?.[0])
    .find(text => text !== undefined)
