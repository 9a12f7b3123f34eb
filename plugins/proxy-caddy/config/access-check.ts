import type { PasswordAccount } from 'busbar/sdk/http1'
import type { CaddyOptions } from './caddy-options.js'
import type { Json, JsonObject } from './json.js'

/** In which Caddy tells the platform by what a request may pass. */
export const questionHeader = 'X-Busbar-Question'

/** By what a request may pass. */
export type AccessQuestion =
  /** A name and its password. `routeId`: whose turn it takes, where many are asked. */
  | { readonly kind: 'passwords'; readonly routeId: string; readonly accounts: readonly PasswordAccount[] }
  /** The address of the client, in one of these ranges. */
  | { readonly kind: 'addresses'; readonly ranges: readonly string[] }

/** As it is sent, with the proxies who are believed of where clients are. */
export type SentQuestion = AccessQuestion & { readonly trustedProxies: readonly string[] }

/**
 * Asks the platform whether a request may pass, where Caddy cannot tell as it has to be. Of passwords it verifies as many at once as
 * are sent to it, and for a name that nobody has it takes a second of a processor: whoever guesses would have all of the machine.
 * Of clients behind proxies it knows the first address of `X-Forwarded-For`, which anybody may have written; which it takes, and
 * how it is told, differs between its versions.
 */
export function accessCheck(
  question: AccessQuestion,
  { responder, ownProxy }: Pick<CaddyOptions, 'responder' | 'ownProxy'>,
  trustedProxies: readonly string[]
): JsonObject {
  const { host, port } = responder
  const sent: SentQuestion = { ...question, trustedProxies }
  return {
    handler: 'reverse_proxy',
    upstreams: [{ dial: `${host.includes(':') ? `[${host}]` : host}:${port}` }],
    // A body is not sent there.
    rewrite: { method: 'GET', uri: '/' },
    headers: {
      request: {
        set: {
          [ownProxy.header]: [ownProxy.value],
          [questionHeader]: [Buffer.from(JSON.stringify(sent)).toString('base64url')]
        },
        delete: ['Cookie', 'Connection', 'Upgrade', 'Expect', 'Content-Length', 'Transfer-Encoding']
      }
    },
    // It goes on behind this handler. Caddy wants one here all the same.
    handle_response: [
      { match: { status_code: [2] }, routes: [{ handle: [{ handler: 'headers', request: {} }] }] }
    ],
    ...(trustedProxies.length > 0 && { trusted_proxies: [...trustedProxies] })
  }
}

/** Handlers of `advanced_config` with the same in the place of Caddy's own, those of subroutes too. */
export function withPasswordChecks(
  handlers: readonly unknown[],
  ask: (accounts: readonly PasswordAccount[]) => JsonObject
): readonly JsonObject[] {
  const changed = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part
    if (Array.isArray(part)) return part.map(changed)
    if ((part as { readonly handler?: unknown }).handler === 'authentication') return ask(accountsOf(part))
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, changed(value)]))
  }
  return handlers.map(handler => changed(handler) as JsonObject)
}

function accountsOf(handler: object): readonly PasswordAccount[] {
  const { providers } = handler as {
    readonly providers?: {
      readonly http_basic?: { readonly accounts?: ReadonlyArray<Readonly<Record<string, Json>>> }
    }
  }
  return (providers?.http_basic?.accounts ?? []).map(({ username, password }) => ({
    username: String(username),
    hashedPassword: String(password)
  }))
}
