import { once } from 'node:events'
import { createServer } from 'node:net'

const first = 20_000
const size = 100
const ranges = 120

/**
 * Ports for the direct addresses of this process alone, as `20000-20098`. Test files run side by side: an address that one has
 * closed for a moment must not be taken by another. The last port of a range is held, and says whose the range is.
 */
export async function claimPortRange(): Promise<string> {
  for (let n = 0; n < ranges; n++) {
    const from = first + ((process.pid + n) % ranges) * size
    const last = from + size - 1
    const claim = createServer().unref()
    try {
      // Where no address of an application is.
      await once(claim.listen({ host: '127.0.0.1', port: last, exclusive: true }), 'listening')
      return `${from}-${last - 1}`
    } catch {
      // Another process has it.
    }
  }
  throw new Error(`all ${ranges} ranges of ports for tests are taken`)
}
