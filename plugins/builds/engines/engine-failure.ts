import { cutText, type Problem } from 'busbar/sdk'
import { shownStages } from '../dockerfile/target.js'
import { problems } from '../problems.js'
import { buildEngineProblems } from './engine-problems.js'
import type { BuildEnding } from './step-log.js'
import { mostSteps } from './steps-network.js'

const outOfMemoryCode = 137

/** The last is what tar says of a file for whose end there was no room. */
export const isDiskFull = (text: string): boolean =>
  /no space left on device|ResourceExhausted|Wrote only \d+ of \d+ bytes/i.test(text)

/** By what a Docker Engine says, and the reader of images. */
export const isTooManyLayers = (text: string): boolean =>
  /max depth exceeded|has \d+ layers, and an image may have \d/.test(text)

/** Why a build failed, in the words of a problem. `exitCode`: of the program that was told to build. */
export function engineBuildProblem(
  { failed, text }: BuildEnding,
  build: {
    readonly dockerfile: string
    readonly memoryBytes: number
    readonly exitCode: number
    /** The image of what has read the file instead of the engine. */
    readonly frontEnd?: string
    /** Of images that an account was to get, by their names. */
    readonly refusals?: ReadonlyMap<string, Problem>
    /** The stage that was asked for, and those that there are. */
    readonly target?: string
    readonly stages?: () => ReadonlyArray<string | undefined>
  }
): Problem {
  const reason =
    lastError(text) ??
    failed.at(-1)?.reason ??
    // No step failed: what takes the image out of the engine did.
    text.findLast(isDiskFull) ??
    `the build engine ended with code ${build.exitCode}`
  const all = [reason, ...failed.map(step => step.reason)].join('\n')
  if (isDiskFull(all)) return buildEngineProblems.diskFull({ reason: shown(withoutPrefix(reason)) })
  const command = exitOf(failed.at(-1)?.reason ?? '') ?? exitOf(reason)
  if (command !== undefined) {
    const step = { command: shown(command.command), code: command.code }
    return command.code === outOfMemoryCode
      ? buildEngineProblems.killed({ ...step, memory: Math.round(build.memoryBytes / 2 ** 20) })
      : buildEngineProblems.command(step)
  }
  const { dockerfile, frontEnd, refusals = new Map() } = build
  if (/no available IPv4 addresses/.test(reason))
    return buildEngineProblems.steps({ dockerfile, most: mostSteps })
  if (isTooManyLayers(reason)) return buildEngineProblems.layers({ dockerfile })
  const noKey = /no SSH key "([^"]{0,200})" forwarded|unset ssh forward key (\S{1,200})/.exec(reason)
  if (noKey !== null) return buildEngineProblems.sshKey({ dockerfile, id: noKey[1] || noKey[2] || 'default' })
  const told = { reason: shown(withoutPrefix(reason)) }
  if (frontEnd !== undefined && isNotFetched(reason) && isAbout(frontEnd, withoutPrefix(reason)))
    return buildEngineProblems.frontEndMissing({ image: frontEnd, ...told })
  const { target, stages = () => [] } = build
  // A stage of the same name may be meant by a COPY --from of the file.
  if (target !== undefined && /target stage \S{1,200} could not be found|no build stage/i.test(reason))
    return problems.targetMissing({ dockerfile, target, stages: shownStages(stages()) })
  // By what BuildKit says of the file: none of it is what a command has printed.
  if (
    frontEnd === undefined &&
    /dockerfile parse error|unknown instruction|failed to parse|no build stage|target stage "|cannot be empty|unexpected key '/i.test(
      reason
    )
  )
    return buildEngineProblems.dockerfile({ dockerfile, ...told })
  // The last words are all that Docker 20.10 says of the step.
  if (/failed to (?:calculate|compute) (?:checksum|cache key)|^"[^"]*" not found/i.test(reason))
    return buildEngineProblems.copy(told)
  if (isNotFetched(reason)) {
    for (const [image, refusal] of refusals) if (isAbout(image, withoutPrefix(reason))) return refusal
    return isDenied(reason) ? buildEngineProblems.baseDenied(told) : buildEngineProblems.base(told)
  }
  return buildEngineProblems.failed(told)
}

const isNotFetched = (reason: string): boolean =>
  /failed to resolve source metadata|pull access denied|failed to do request|failed to authorize|not found$/i.test(
    reason
  )

/** By what BuildKit says of an answer of a registry. */
const isDenied = (reason: string): boolean =>
  /pull access denied|failed to authorize|authorization failed|no basic auth credentials|\b401 Unauthorized|\b403 Forbidden/i.test(
    reason
  )

/** By its name, or, as older engines say it, by its address in a registry. */
function isAbout(image: string, reason: string): boolean {
  const [, ...path] = image.split('/')
  const [name, reference] = (path.pop() ?? '').split(/[:@]/)
  return reason.includes(image) || reason.includes(`/v2/${[...path, name].join('/')}/manifests/${reference}`)
}

const shown = (text: string): string => cutText(text.replace(/\s+/g, ' ').trim(), 600)

function lastError(text: readonly string[]): string | undefined {
  const found = text.findLast(line => /^(?:ERROR|error): |failed to solve/.test(line))
  return found?.replace(/^(?:ERROR|error): /, '')
}

/** The last of these is said of whatever goes wrong with a front-end, and in it. */
const withoutPrefix = (reason: string): string =>
  reason.replace(
    /^(?:failed to solve(?: with frontend [\w.]+)?: |failed to create LLB definition: |failed with build-arg:BUILDKIT_SYNTAX = \S+: )+/,
    ''
  )

/** `process "/bin/sh -c npm ci" did not complete successfully: exit code: 1`, and older words for the same. */
function exitOf(reason: string): { readonly command: string; readonly code: number } | undefined {
  const marks = [
    'did not complete successfully: exit code: ',
    'returned non-zero exit code: ',
    ': exit code: ',
    'runc did not terminate successfully: exit status '
  ]
  for (const mark of marks) {
    const at = reason.lastIndexOf(mark)
    if (at < 0) continue
    const code = Number.parseInt(reason.slice(at + mark.length), 10)
    if (Number.isNaN(code)) continue
    const before = reason.slice(0, at)
    const [begin, end] = before.startsWith('process "') ? ['"', '"'] : ['[', ']']
    const [from, to] = [before.indexOf(begin), before.lastIndexOf(end)]
    const command = from >= 0 && to > from ? before.slice(from + 1, to) : before
    return { command: command.replace(/^\/bin\/sh -c /, ''), code }
  }
  return undefined
}
