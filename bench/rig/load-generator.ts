import autocannon from 'autocannon'
import { quantile } from '../statistics.js'
import { serveParent } from './child.js'

export interface LoadOptions {
  readonly url: string
  readonly connections: number
  /** How many requests at most; `stop` ends a load before. */
  readonly amount: number
  /** One credential after the other, shared out among the connections; none when it is empty. */
  readonly tokens: readonly string[]
  /** Of every request, besides. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface LoadResult {
  readonly requests: number
  /** Answers that were no success, and connections that broke. */
  readonly failed: number
  readonly p50Ms: number
  readonly p99Ms: number
}

let running: autocannon.Instance | undefined

/** Sends requests over kept-alive connections, each as soon as the one before it is answered. */
async function load({ url, connections, amount, tokens, headers = {} }: LoadOptions): Promise<LoadResult> {
  const latencies = new Float64Array(amount)
  let requests = 0
  let failed = 0
  let connected = 0
  const setupClient = (client: autocannon.Client): void => {
    const first = connected++
    const own = tokens.filter((_, index) => index % connections === first)
    if (own.length > 0)
      client.setRequests(own.map(token => ({ headers: { ...headers, authorization: `Bearer ${token}` } })))
    client.on('response', (status, _bytes, ms) => {
      latencies[requests++] = ms
      if (status !== 200 && status !== 304) failed++
    })
  }
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    running = autocannon(
      { url, connections, amount, headers, sampleInt: 20, setupClient },
      (error: Error | null, done) => {
        if (error === null) resolve(done)
        else reject(error)
      }
    )
  })
  running = undefined
  const measured = latencies.subarray(0, requests)
  return {
    requests,
    failed: failed + result.errors,
    p50Ms: quantile(measured, 0.5),
    p99Ms: quantile(measured, 0.99)
  }
}

const commands = {
  load,
  stop: () => {
    running?.stop?.()
  }
}
export type LoadCommands = typeof commands

serveParent(null, commands)
