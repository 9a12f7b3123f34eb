import type { Clock, Log, Operation, TokenCaller } from 'busbar/sdk'
import type { TokenUseStore } from './token-use-store.js'

const useEveryMs = 5 * 60_000

interface TokenUsesParts {
  readonly store: Pick<TokenUseStore, 'put'>
  readonly clock: Clock
  readonly log: Log
}

/** Notes what tokens are used for: each operation of each token in each project at most every five minutes. */
export class TokenUses {
  // When each was last written, by token, operation and project. The guard reports every request: most of
  // them cost three look-ups, of keys whose hashes are known, and allocate nothing.
  readonly #noted = new Map<string, Map<Operation, Map<string, number>>>()
  readonly #stopSweeping: () => void

  constructor(private readonly parts: TokenUsesParts) {
    const { clock } = parts
    this.#stopSweeping = clock.every(useEveryMs, () => {
      sweep(this.#noted, clock.elapsed() - useEveryMs)
    })
  }

  admitted({ tokenId }: TokenCaller, operation: Operation, projectId = ''): void {
    const uses = within(within(this.#noted, tokenId), operation)
    const { clock } = this.parts
    const atMs = clock.elapsed()
    const before = uses.get(projectId)
    if (before !== undefined && atMs - before < useEveryMs) return
    uses.set(projectId, atMs)
    void this.#write(
      tokenId,
      operationName(operation),
      projectId === '' ? null : projectId,
      clock.now().getTime()
    )
  }

  close(): void {
    this.#stopSweeping()
  }

  async #write(tokenId: string, operation: string, projectId: string | null, atMs: number): Promise<void> {
    const { store, log } = this.parts
    try {
      await store.put(
        tokenId,
        { operation, project_id: projectId, last_used_at: new Date(atMs) },
        new Date(atMs - useEveryMs)
      )
    } catch (error) {
      log.warn({ err: error }, 'the use of a token could not be written')
    }
  }
}

function within<K, L, V>(maps: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let found = maps.get(key)
  if (found === undefined) {
    found = new Map()
    maps.set(key, found)
  }
  return found
}

/** Forgets what would be written again anyhow, and with it operations that are served no more. */
function sweep(noted: Map<string, Map<Operation, Map<string, number>>>, old: number): void {
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
