import type { JsonObject } from './json.js'

const forbidden: JsonObject = {
  handler: 'static_response',
  status_code: 403,
  headers: { 'Content-Type': ['text/plain; charset=utf-8'] },
  body: 'Forbidden\n'
}

/** Lets in who connects from one of `ranges`; without any, nobody. */
export const allowlist = (ranges: readonly string[]): JsonObject => ({
  handler: 'subroute',
  routes: [
    {
      ...(ranges.length > 0 && { match: [{ not: [{ remote_ip: { ranges: [...ranges] } }] }] }),
      handle: [forbidden]
    }
  ]
})
