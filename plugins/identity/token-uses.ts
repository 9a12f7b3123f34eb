import type { Clock, CredentialSource, Log } from 'busbar/sdk'
import type { TokenUseStore } from './token-use-store.js'

const useEveryMs = 5 * 60_000
const sweepEveryMs = 60_000

/** Notes what tokens are used for: each operation of each token in each project at most every five minutes. */
export interface TokenUses {
  readonly admitted: NonNullable<CredentialSource['admitted']>
  close(): void
}

export function createTokenUses ({ store, clock, log }: {
  readonly store: TokenUseStore
  readonly clock: Clock
  readonly log: Log
}): TokenUses {
  // The guard tells of every request; this remembers what was written, so that most of them cost a look-up.
  const noted = new Map<string, number>()
  const close = clock.every(sweepEveryMs, () => {
    const old = clock.now().getTime() - useEveryMs
    for (const [use, at] of noted) if (at <= old) noted.delete(use)
  })

  async function write (tokenId: string, operation: string, projectId: string | null, atMs: number): Promise<void> {
    try {
      await store.put(tokenId, { operation, project_id: projectId, last_used_at: new Date(atMs) }, new Date(atMs - useEveryMs))
    } catch (error) {
      log.warn({ err: error }, 'the use of a token could not be written')
    }
  }

  return Object.freeze<TokenUses>({
    admitted ({ tokenId }, { method, url }, projectId) {
      const use = `${tokenId} ${method} ${url} ${projectId ?? ''}`
      const atMs = clock.now().getTime()
      const before = noted.get(use)
      if (before !== undefined && atMs - before < useEveryMs) return
      noted.set(use, atMs)
      void write(tokenId, operationName(method, url), projectId ?? null, atMs)
    },
    close
  })
}

/** `GET /api/projects/{projectId}`, as the API's description writes it. */
export const operationName = (method: string, url: string): string => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`
