import {
  type Clock,
  type Contributions,
  type CredentialSource,
  cookieNames,
  type FoundCredential,
  type Log,
  Problem
} from 'busbar/sdk'
import { withDeadline } from '../clock/waits.js'
import type { Authenticate, Authentication } from './authentication.js'
import { readCookie } from './cookie.js'
import type { CredentialCache, KnownCredential } from './credential-cache.js'
import { digestOf, looksLike } from './secret-value.js'

const missing: Authentication = Object.freeze({ kind: 'missing' })
const invalid: Authentication = Object.freeze({ kind: 'invalid' })

const unknownLifetimeMs = 10_000
const maxUnknown = 1000
/** How often the use of a credential is passed on, at most. */
const useEveryMs = 5 * 60_000

/** Says who a request comes from. A credential is looked up once; a hit in the cache allocates nothing. */
export function createAuthenticator({
  cache,
  sources,
  clock,
  log,
  findLimitMs = 15_000
}: {
  readonly cache: CredentialCache
  readonly sources: Contributions<CredentialSource, 'identity'>
  readonly clock: Clock
  readonly log: Log
  /** How long a look-up may take. */
  readonly findLimitMs?: number
}): Authenticate {
  // A client that retries a dead credential in a loop costs no queries. A digest that is unknown now can
  // never become known, so this needs no invalidation; it is emptied when full and never grows.
  const unknown = new Map<string, number>()

  async function find(kind: 'session' | 'token', digest: string): Promise<KnownCredential | undefined> {
    const source = sources.get('identity')
    if (source === undefined) throw unavailable('while the plugin "identity" is off')
    // On a machine that has far too much to do it may take that long: it is to be tried again, and no fault of ours.
    const found = await withDeadline(source.find(kind, digest), findLimitMs, () =>
      unavailable(`now, as looking one up took longer than ${findLimitMs / 1000} s`)
    )
    return found === undefined ? undefined : remember(found)
  }

  async function load(kind: 'session' | 'token', digest: string): Promise<Authentication> {
    const until = unknown.get(digest)
    if (until !== undefined && until > clock.elapsed()) return invalid
    const known = await cache.load(digest, async () => await find(kind, digest))
    if (known !== undefined) return accept(known, digest, clock.now().getTime())
    if (unknown.size >= maxUnknown) unknown.clear()
    unknown.set(digest, clock.elapsed() + unknownLifetimeMs)
    return invalid
  }

  function accept(known: KnownCredential, digest: string, nowMs: number): Authentication {
    if (known.expiresAtMs <= nowMs) {
      cache.forget(digest)
      return invalid
    }
    if (nowMs - known.usedAtMs >= useEveryMs) void noteUse(known, nowMs)
    return known.answer
  }

  async function noteUse(known: KnownCredential, nowMs: number): Promise<void> {
    known.usedAtMs = nowMs
    try {
      await sources.get('identity')?.used?.(known.caller, new Date(nowMs), new Date(nowMs - useEveryMs))
    } catch (error) {
      log.warn({ err: error }, 'the last use of a credential could not be written')
    }
  }

  function check(kind: 'session' | 'token', value: string): Authentication | Promise<Authentication> {
    if (!looksLike(kind, value)) return invalid
    const digest = digestOf(value)
    const known = cache.get(digest)
    return known === undefined ? load(kind, digest) : accept(known, digest, clock.now().getTime())
  }

  return ({ authorization, cookie }) => {
    // A Bearer header decides alone, good or bad: it is exempt from CSRF, so cookies must not count beside it.
    if (authorization !== undefined && isBearer(authorization))
      return check('token', authorization.slice(7).trim())
    const session = readCookie(cookie, cookieNames.session)
    return session === undefined || session === '' ? missing : check('session', session)
  }
}

const unavailable = (why: string): Problem =>
  new Problem(503, 'E_AUTH_UNAVAILABLE', `credentials cannot be checked ${why}: try again in a moment`, {
    remedy: 'try again in a moment'
  })

/** True for a header of the Bearer scheme, in whatever case. */
const isBearer = (authorization: string): boolean =>
  authorization.startsWith('Bearer ') || /^bearer( |$)/i.test(authorization)

function remember({ caller, expiresAt, lastUsedAt }: FoundCredential): KnownCredential {
  return {
    caller,
    answer: Object.freeze({ kind: 'caller', caller }),
    expiresAtMs: expiresAt?.getTime() ?? Infinity,
    usedAtMs: lastUsedAt?.getTime() ?? -Infinity
  }
}
