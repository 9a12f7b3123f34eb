import { credentialSpans, mayHoldCredential } from './credential-shapes.js'
import { NeedleSet, type Span } from './needle-set.js'
import { secretForms } from './secret-forms.js'

export const redacted = '[REDACTED]'

export type Redactor = ReturnType<typeof createRedactor>

/** The set of secret values that no output may show, and the one place that takes them out. */
export function createRedactor () {
  const counts = new Map<string, number>()
  let compiled: NeedleSet | undefined

  const needles = (): NeedleSet => compiled ??= new NeedleSet([...counts.keys()])

  function count (forms: readonly string[], change: 1 | -1): void {
    for (const form of forms) {
      const left = (counts.get(form) ?? 0) + change
      if (left > 0) counts.set(form, left)
      else counts.delete(form)
    }
    if (forms.length > 0) compiled = undefined
  }

  /** Counted: a value added twice stays hidden until both returned functions were called. */
  function add (values: readonly string[]): () => void {
    let forms = values.flatMap(secretForms)
    count(forms, 1)
    return () => {
      count(forms, -1)
      forms = []
    }
  }

  /** Overlapping and touching finds are one, so that no part of the second shows. */
  function secretSpans (text: string): Span[] {
    const found = credentialSpans(text)
    for (let match = needles().find(text); match !== undefined; match = needles().find(text, match.start + 1)) {
      found.push(match)
    }
    found.sort((a, b) => a.start - b.start)
    const merged: Span[] = []
    for (const span of found) {
      const last = merged.at(-1)
      if (last === undefined || span.start > last.end) merged.push(span)
      else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, span.end) }
    }
    return merged
  }

  const isClean = (text: string): boolean => !mayHoldCredential(text) && needles().find(text) === undefined

  const clean = (text: string): string => isClean(text) ? text : mask(text, secretSpans(text))

  function cleanValue (value: unknown, keep: readonly string[] = []): unknown {
    if (typeof value === 'string') return clean(value)
    if (Array.isArray(value)) return value.map(item => cleanValue(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) =>
      keep.includes(key) ? [key, item] : [clean(key), cleanValue(item)]))
  }

  /**
   * The same inside the strings and keys of a JSON text, which stays valid; numbers are left alone, and
   * so are the top-level members named in `keep`.
   */
  function cleanJson (json: string, keep?: readonly string[]): string {
    // A backslash may hide a secret from the search in the encoded text.
    const mayHide = counts.size > 0 && json.includes('\\')
    return !mayHide && isClean(json) ? json : JSON.stringify(cleanValue(JSON.parse(json), keep))
  }

  return { add, clean, cleanJson }
}

function mask (text: string, spans: readonly Span[]): string {
  let result = ''
  let from = 0
  for (const { start, end } of spans) {
    result += text.slice(from, start) + redacted
    from = end
  }
  return result + text.slice(from)
}
