/** A part of Caddy's configuration. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

/** The same text for what means the same, whatever the order of the keys: Caddy sorts them. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner
  )
}

/** What a key of an object holds, where it is an object. */
export function objectAt(value: unknown, ...path: readonly string[]): JsonObject | undefined {
  let at = value
  for (const key of path) {
    if (typeof at !== 'object' || at === null || Array.isArray(at)) return undefined
    at = (at as JsonObject)[key]
  }
  return typeof at === 'object' && at !== null && !Array.isArray(at) ? (at as JsonObject) : undefined
}
