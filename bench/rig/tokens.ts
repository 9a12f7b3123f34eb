import { setTimeout as sleep } from 'node:timers/promises'
import type { TestClient } from 'busbar/sdk/testing'
import { expect } from './expect.js'

/** A token may make 100 requests a minute; below that, because the two clocks are not read at once. */
export const requestsPerToken = 90
const windowMs = 65_000
/** Enough for the longest benchmark. */
export const mostTokens = 450
const atOnce = 4

/** Tokens for more requests than the limit of one allows. None is used beyond its budget. */
export class TokenPool {
  readonly #freeAt: number[]
  #next = 0

  constructor(readonly all: readonly string[]) {
    this.#freeAt = all.map(() => 0)
  }

  /** Those for so many requests, the same number for each connection; waits until their windows are over. */
  async take(requests: number, connections: number): Promise<string[]> {
    const wanted = Math.ceil(requests / connections / requestsPerToken) * connections
    if (wanted > this.all.length)
      throw new Error(`${requests} requests need ${wanted} tokens, but there are ${this.all.length}`)
    const taken: string[] = []
    for (let n = 0; n < wanted; n++, this.#next = (this.#next + 1) % this.all.length) {
      await sleep(Math.max(0, (this.#freeAt[this.#next] ?? 0) - performance.now()))
      this.#freeAt[this.#next] = Infinity
      taken.push(this.all[this.#next] ?? '')
    }
    const until = performance.now() + windowMs
    for (const [index, freeAt] of this.#freeAt.entries()) if (freeAt === Infinity) this.#freeAt[index] = until
    return taken
  }
}

/** Makes them through the API, as each of the users. */
export async function createTokens(users: readonly TestClient[], tokensPerUser: number): Promise<TokenPool> {
  const perUser = await Promise.all(
    users.map(async user => {
      const own: string[] = []
      for (let n = 0; n < tokensPerUser; n += atOnce) {
        const answers = await Promise.all(
          Array.from(
            { length: Math.min(atOnce, tokensPerUser - n) },
            async (_, index) =>
              await user.post('/api/tokens', { name: `bench ${n + index}`, scopes: ['read'] })
          )
        )
        own.push(...answers.map(answer => (expect(answer, 201) as { token: string }).token))
      }
      return own
    })
  )
  return new TokenPool(perUser.flat())
}
