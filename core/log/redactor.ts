import type { SecretScope } from 'busbar/sdk'
import { credentialSpans, mayHoldCredential } from './credential-shapes.js'
import { cutSpans } from './cut-spans.js'
import type { Span } from './needle-set.js'
import { SecretSet } from './secret-set.js'

const redacted = '[REDACTED]'

export type Redactor = ReturnType<typeof createRedactor>

/**
 * The secret values that no output may show, and the one place that takes them out. Those of the installation are taken
 * out everywhere; those of a scope from what is cleaned in that scope, and from the log, which only operators read.
 */
export function createRedactor() {
  const shared = new SecretSet()
  const scopes = new Set<SecretSet>()
  // Every line asks for them, and scopes come and go with deployments only.
  const everywhere: readonly SecretSet[] = [shared]
  let ofLog = everywhere
  const noteScopes = (): void => {
    ofLog = [shared, ...scopes]
  }

  const clean = (text: string, sets: readonly SecretSet[], cuts: readonly Span[] = []): string =>
    cuts.length === 0 && isClean(text, sets) ? text : mask(text, secretSpans(text, sets, cuts))

  function cleanValue(value: unknown, sets: readonly SecretSet[], keep: readonly string[] = []): unknown {
    if (typeof value === 'string') return clean(value, sets)
    if (Array.isArray(value)) return value.map(item => cleanValue(item, sets))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) =>
        keep.includes(key) ? [key, item] : [clean(key, sets), cleanValue(item, sets)]
      )
    )
  }

  function cleanWithin(json: string, sets: readonly SecretSet[], keep?: readonly string[]): string {
    // A backslash may hide a secret from the search in the encoded text.
    const mayHide = json.includes('\\') && sets.some(({ isEmpty }) => !isEmpty)
    return !mayHide && isClean(json, sets) ? json : JSON.stringify(cleanValue(JSON.parse(json), sets, keep))
  }

  return {
    /** Hidden until the function that it returns was called, whatever others add and remove meanwhile. */
    add: (values: readonly string[]): (() => void) => shared.add(values),
    /** What may be half a secret where the text was cut goes too: see `cutMark`. */
    clean: (text: string): string => clean(text, everywhere, cutSpans(text)),
    /**
     * The same inside the strings and keys of a JSON text, which stays valid; numbers are left alone, and
     * so are the top-level members named in `keep`.
     */
    cleanJson: (json: string, keep?: readonly string[]): string => cleanWithin(json, everywhere, keep),
    /** For the log: of the secrets of every scope too. */
    cleanLogText: (text: string): string => clean(text, ofLog),
    cleanLogLine: (json: string, keep?: readonly string[]): string => cleanWithin(json, ofLog, keep),
    /** See `Secrets.scope`. */
    scope(): SecretScope {
      const own = new SecretSet()
      const ofScope = [shared, own]
      return {
        redact(values) {
          own.add(values)
          scopes.add(own)
          noteScopes()
        },
        clean: text => clean(text, ofScope, cutSpans(text)),
        release() {
          own.clear()
          scopes.delete(own)
          noteScopes()
        }
      }
    }
  }
}

function isClean(text: string, sets: readonly SecretSet[]): boolean {
  if (mayHoldCredential(text)) return false
  for (const set of sets) if (set.isIn(text)) return false
  return true
}

/** Overlapping and touching finds are one, so that no part of the second shows. */
function secretSpans(text: string, sets: readonly SecretSet[], cuts: readonly Span[]): Span[] {
  const found = [...cuts, ...credentialSpans(text)]
  for (const set of sets) for (const span of set.spans(text)) found.push(span)
  found.sort((a, b) => a.start - b.start)
  const merged: Span[] = []
  for (const span of found) {
    const last = merged.at(-1)
    if (last === undefined || span.start > last.end) merged.push(span)
    else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, span.end) }
  }
  return merged
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
