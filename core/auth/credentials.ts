import { type Credentials, cookieNames, Problem, type Tx } from 'busbar/sdk'
import type { Signals } from '../database/listener.js'
import { readCookie } from './cookie.js'
import type { CredentialCache, Revoked } from './credential-cache.js'
import { checkCsrf } from './csrf.js'
import { digestOf, looksLike, newSecret } from './secret-value.js'

/** Carries `<kind>:<id>` of the credentials that are no longer what they were. */
export const credentialsTopic = 'credentials'
const kinds = ['user', 'role', 'session', 'token', 'project'] as const

/** What the plugin that keeps credentials is given: secrets read as the guard reads them, and its cache. */
export function createCredentials({
  cache,
  signals,
  afterCommit
}: {
  readonly cache: CredentialCache
  readonly signals: Signals
  readonly afterCommit: (tx: Tx, run: () => void) => void
}): Credentials {
  signals.onSignal(credentialsTopic, data => {
    cache.drop(parse(data))
  })
  signals.onReconnect(() => {
    cache.drop({ kind: 'all' })
  })

  return Object.freeze<Credentials>({
    issue(kind) {
      const value = newSecret(kind)
      return { value, digest: digestOf(value) }
    },
    refreshDigest(headers) {
      const forged = checkCsrf('POST', headers)
      if (forged !== null) throw new Problem(forged.status, forged.code, forged.message)
      const value = readCookie(headers.cookie, cookieNames.refresh)
      return value !== undefined && looksLike('refresh', value) ? digestOf(value) : undefined
    },
    async forget(kind, id, tx) {
      // The signal of a transaction comes back a moment after the commit, which is too late for the next request.
      if (tx !== undefined)
        afterCommit(tx, () => {
          cache.drop({ kind, id })
        })
      await signals.signal(credentialsTopic, `${kind}:${id}`, tx)
    }
  })
}

/** What cannot be read, from a newer release for instance, drops everything: the safe side. */
function parse(data: string): Revoked {
  const [name, id = ''] = data.split(':')
  const kind = kinds.find(known => known === name)
  return kind === undefined || id === '' ? { kind: 'all' } : { kind, id }
}
