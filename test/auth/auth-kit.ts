import { EventEmitter } from 'node:events'
import type { CallerUser, CredentialSource, FoundCredential, SignedInCaller, Tx } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { createAuthenticator } from '../../core/auth/authenticator.js'
import { CredentialCache } from '../../core/auth/credential-cache.js'
import { CredentialWatch } from '../../core/auth/credential-watch.js'
import { createCredentials } from '../../core/auth/credentials.js'

const user: CallerUser = { id: 'u', email: 'ada@example.com', username: 'ada', role: 'member' }

export const sessionOf = (sessionId: string, userId = 'u'): FoundCredential => ({
  caller: { kind: 'session', sessionId, user: { ...user, id: userId } },
  expiresAt: null,
  lastUsedAt: null
})

export const tokenOf = (
  tokenId: string,
  { pins = null, ...more }: { pins?: readonly string[] | null } & Partial<FoundCredential> = {}
): FoundCredential => ({
  caller: {
    kind: 'token',
    tokenId,
    tokenName: 'ci',
    scope: 'read',
    pins,
    user: { ...user, id: `owner of ${tokenId}` }
  },
  expiresAt: null,
  lastUsedAt: null,
  ...more
})

/** The guard's half of credentials over a source that is a map from digests. */
export function authKit({ findLimitMs }: { readonly findLimitMs?: number } = {}) {
  const clock = testClock()
  const wire = new EventEmitter()
  const cache = new CredentialCache(100)
  const commits: Array<() => void> = []
  const credentials = createCredentials({
    cache,
    afterCommit: (_tx, run) => {
      commits.push(run)
    },
    signals: {
      async signal(topic: string, data: string, tx?: Tx) {
        if (tx === undefined) wire.emit(topic, data)
      },
      onSignal: (topic, listener) => {
        wire.on(topic, listener)
        return () => {
          wire.off(topic, listener)
        }
      },
      onReconnect: listener => {
        wire.on('reconnect', listener)
        return () => {
          wire.off('reconnect', listener)
        }
      }
    }
  })
  const kept = new Map<string, FoundCredential>()
  const asked: string[] = []
  const current = new Map<SignedInCaller, FoundCredential>()
  const reads: SignedInCaller[] = []
  /** Keeps answers of `current` back. */
  const gate = {
    opened: Promise.resolve(),
    close(): () => void {
      let open = (): void => {}
      gate.opened = new Promise(resolve => {
        open = resolve
      })
      return open
    }
  }
  const uses: Array<{ at: number; recent: number }> = []
  const plugged: { source: CredentialSource | undefined } = {
    source: {
      find: async (kind, digest) => {
        asked.push(kind)
        return kept.get(`${kind} ${digest}`)
      },
      current: async caller => {
        reads.push(caller)
        const found = current.get(caller)
        await gate.opened
        return found
      },
      used: async (_caller, at, recent) => {
        uses.push({ at: at.getTime(), recent: recent.getTime() })
      }
    }
  }
  const sources = {
    get: (key: string) => (key === 'identity' ? plugged.source : undefined),
    keys: () => [],
    entries: () => []
  }
  const log = pino({ level: 'silent' })
  const authenticate = createAuthenticator({ cache, sources, clock, log, findLimitMs })
  const watch = new CredentialWatch({ cache, sources, clock, log })

  return {
    clock,
    wire,
    credentials,
    asked,
    uses,
    plugged,
    commits,
    authenticate,
    watch,
    /** What `watch` reads, by the caller it asks for. */
    current,
    reads,
    gate,
    /** A new credential; returns what the client shows. */
    issue(found: FoundCredential): { authorization: string | undefined; cookie: string | undefined } {
      const { kind } = found.caller
      const { value, digest } = credentials.issue(kind)
      kept.set(`${kind} ${digest}`, found)
      return kind === 'token'
        ? { authorization: `Bearer ${value}`, cookie: undefined }
        : { authorization: undefined, cookie: `theme=dark; token=${value}` }
    }
  }
}
