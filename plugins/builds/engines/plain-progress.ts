/** What BuildKit tells of a build, with `--progress=plain`. */
export type ProgressEvent =
  /** `step`: counted by BuildKit. It may be said again, when others were told of in between. */
  | { readonly kind: 'step'; readonly step: number; readonly name: string }
  /** A line of what the commands of a step print. */
  | { readonly kind: 'output'; readonly step: number; readonly text: string }
  /** What the engine does for a step: "sha256:1b2… 10.5MB / 20.1MB 1.2s". */
  | { readonly kind: 'status'; readonly step: number; readonly text: string }
  | { readonly kind: 'done'; readonly step: number; readonly seconds: number }
  | { readonly kind: 'cached'; readonly step: number }
  | { readonly kind: 'cancelled'; readonly step: number }
  | { readonly kind: 'failed'; readonly step: number; readonly reason: string }
  /** A line that belongs to no step: the end of a failed build, warnings. */
  | { readonly kind: 'text'; readonly text: string }

/**
 * Reads a line. A command cannot write one that looks like another step's: each line of its output is told with the number of
 * its step and the time before it.
 */
export function readProgress(line: string): ProgressEvent | undefined {
  if (line === '') return undefined
  const head = line[0] === '#' ? numberAt(line, 1) : undefined
  if (head === undefined || line[head.end] !== ' ') return { kind: 'text', text: line }
  const step = head.value
  const rest = line.slice(head.end + 1)
  // Others are told of from here on, and this one is gone on with later.
  if (rest === '...') return undefined
  const at = secondsAt(rest)
  if (at !== undefined && (rest[at.end] === ' ' || at.end === rest.length))
    return { kind: 'output', step, text: rest.slice(at.end + 1) }
  if (rest === 'CACHED') return { kind: 'cached', step }
  if (rest === 'CANCELED') return { kind: 'cancelled', step }
  if (rest.startsWith('ERROR: ')) return { kind: 'failed', step, reason: rest.slice('ERROR: '.length) }
  if (rest.startsWith('DONE ')) {
    const took = secondsAt(rest.slice('DONE '.length))
    if (took !== undefined) return { kind: 'done', step, seconds: took.value }
  }
  return rest[0] === '[' ? { kind: 'step', step, name: rest } : { kind: 'status', step, text: rest }
}

interface Found {
  readonly value: number
  /** Behind it. */
  readonly end: number
}

const isDigit = (sign: string | undefined): boolean => sign !== undefined && sign >= '0' && sign <= '9'

function numberAt(text: string, from: number): Found | undefined {
  let end = from
  while (isDigit(text[end]) && end - from < 9) end++
  return end === from || isDigit(text[end]) ? undefined : { value: Number(text.slice(from, end)), end }
}

/** `0.350`, as the time of a line of output is written. */
function secondsAt(text: string): Found | undefined {
  const whole = numberAt(text, 0)
  if (whole === undefined || text[whole.end] !== '.') return undefined
  const parts = numberAt(text, whole.end + 1)
  return parts === undefined ? undefined : { value: Number(text.slice(0, parts.end)), end: parts.end }
}
