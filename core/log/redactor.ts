import { credentialSpans, mayHoldCredential } from './credential-shapes.js'
import { longestNeedle, NeedleSet, type Span } from './needle-set.js'
import { PieceSet } from './piece-set.js'
import { formsOfAll } from './secret-forms.js'

const redacted = '[REDACTED]'

export type Redactor = ReturnType<typeof createRedactor>

type Search = (text: string, from: number) => Span | undefined

/** The set of secret values that no output may show, and the one place that takes them out. */
export function createRedactor() {
  const groups = new Set<{ readonly needles: () => NeedleSet }>()
  const pieces = new PieceSet()

  /** Each addition hides its values by itself until the function it returned was called: what others add and take back costs it nothing. */
  function add(values: readonly string[]): () => void {
    const forms = [...new Set(formsOfAll(values))]
    const short = forms.filter(({ length }) => length <= longestNeedle)
    const long = forms.filter(({ length }) => length > longestNeedle)
    let compiled: NeedleSet | undefined
    const group = { needles: () => (compiled ??= new NeedleSet(short)) }
    if (short.length > 0) groups.add(group)
    for (const needle of long) pieces.add(needle)
    return () => {
      groups.delete(group)
      for (const needle of long.splice(0)) pieces.remove(needle)
    }
  }

  function* finds(find: Search, text: string): Generator<Span> {
    for (let match = find(text, 0); match !== undefined; match = find(text, match.start + 1)) yield match
  }

  const searches = (): Search[] => [
    (text, from) => pieces.find(text, from),
    ...[...groups].map(
      ({ needles }): Search =>
        (text, from) =>
          needles().find(text, from)
    )
  ]

  /** Overlapping and touching finds are one, so that no part of the second shows. */
  function secretSpans(text: string): Span[] {
    const found = credentialSpans(text)
    for (const search of searches()) found.push(...finds(search, text))
    found.sort((a, b) => a.start - b.start)
    const merged: Span[] = []
    for (const span of found) {
      const last = merged.at(-1)
      if (last === undefined || span.start > last.end) merged.push(span)
      else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, span.end) }
    }
    return merged
  }

  function isClean(text: string): boolean {
    if (mayHoldCredential(text) || pieces.find(text) !== undefined) return false
    for (const { needles } of groups) if (needles().find(text) !== undefined) return false
    return true
  }

  const clean = (text: string): string => (isClean(text) ? text : mask(text, secretSpans(text)))

  function cleanValue(value: unknown, keep: readonly string[] = []): unknown {
    if (typeof value === 'string') return clean(value)
    if (Array.isArray(value)) return value.map(item => cleanValue(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) =>
        keep.includes(key) ? [key, item] : [clean(key), cleanValue(item)]
      )
    )
  }

  /**
   * The same inside the strings and keys of a JSON text, which stays valid; numbers are left alone, and
   * so are the top-level members named in `keep`.
   */
  function cleanJson(json: string, keep?: readonly string[]): string {
    // A backslash may hide a secret from the search in the encoded text.
    const mayHide = (groups.size > 0 || !pieces.isEmpty) && json.includes('\\')
    return !mayHide && isClean(json) ? json : JSON.stringify(cleanValue(JSON.parse(json), keep))
  }

  return { add, clean, cleanJson }
}

function mask(text: string, spans: readonly Span[]): string {
  let result = ''
  let from = 0
  for (const { start, end } of spans) {
    result += text.slice(from, start) + redacted
    from = end
  }
  return result + text.slice(from)
}
