import type { Clock, CredentialSource, Log, Operation } from 'busbar/sdk'
import type { TokenUseStore } from './token-use-store.js'

const useEveryMs = 5 * 60_000

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
  // When each was last written, by token, operation and project. The guard tells of every request: most of
  // them cost three look-ups, of keys whose hashes are known, and allocate nothing.
  const noted = new Map<string, Map<Operation, Map<string, number>>>()
  const close = clock.every(useEveryMs, () => { sweep(noted, clock.now().getTime() - useEveryMs) })

  async function write (tokenId: string, operation: string, projectId: string | null, atMs: number): Promise<void> {
    try {
      await store.put(tokenId, { operation, project_id: projectId, last_used_at: new Date(atMs) }, new Date(atMs - useEveryMs))
    } catch (error) {
      log.warn({ err: error }, 'the use of a token could not be written')
    }
  }

  return Object.freeze<TokenUses>({
    admitted ({ tokenId }, operation, projectId = '') {
      const uses = within(within(noted, tokenId), operation)
      const atMs = clock.now().getTime()
      const before = uses.get(projectId)
      if (before !== undefined && atMs - before < useEveryMs) return
      uses.set(projectId, atMs)
      void write(tokenId, operationName(operation), projectId === '' ? null : projectId, atMs)
    },
    close
  })
}

function within<K, L, V> (maps: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let found = maps.get(key)
  if (found === undefined) maps.set(key, found = new Map())
  return found
}

/** Forgets what would be written again anyhow, and with it operations that are served no more. */
function sweep (noted: Map<string, Map<Operation, Map<string, number>>>, old: number): void {
  for (const [token, operations] of noted) {
    for (const [operation, projects] of operations) {
      for (const [project, at] of projects) if (at <= old) projects.delete(project)
      if (projects.size === 0) operations.delete(operation)
    }
    if (operations.size === 0) noted.delete(token)
  }
}

/** `GET /api/projects/{projectId}`, as the API's description writes it. */
const operationName = ({ method, url }: Operation): string => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`
