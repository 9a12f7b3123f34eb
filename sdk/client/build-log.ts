import { ApiError } from './api-error.js'
import type { BusbarClient } from './busbar-client.js'
import { type DeploymentPlace, deploymentPath, paramsOf } from './deployment-place.js'
import { eventsIn } from './event-stream.js'
import { NetworkError } from './network-error.js'
import { sleep } from './retry.js'

/** A line of the log of a deployment. */
export interface LogLine {
  readonly type: 'log'
  /** When it was written, RFC 3339. */
  readonly ts: string
  readonly level: string
  /** Of what a program wrote: where to. */
  readonly stream?: 'stdout' | 'stderr'
  readonly msg: string
  /** The same as `msg`. */
  readonly text: string
}

interface FollowedLog {
  readonly lines: AsyncGenerator<LogLine>
  /** The deployment has ended: a connection that does not say so soon is not alive any more. */
  expectEnd(): void
}

const firstPauseMs = 250
const longestPauseMs = 5_000
/** A platform that is away for longer has no deployment to follow. */
const mostFailures = 40
const endWithinMs = 5_000

/** The log from its first line on, each line once, over as many connections as that takes. */
export function followLog(client: BusbarClient, place: DeploymentPlace, signal?: AbortSignal): FollowedLog {
  let connection = new AbortController()
  let ending: ReturnType<typeof setTimeout> | undefined

  async function* lines(): AsyncGenerator<LogLine> {
    let lastId = '0'
    try {
      for (let failures = 0; ; ) {
        connection = new AbortController()
        try {
          const response = await client.fetch('GET', `${deploymentPath}/build-logs`, {
            params: paramsOf(place),
            headers: { 'last-event-id': lastId },
            signal: signal === undefined ? connection.signal : AbortSignal.any([signal, connection.signal])
          })
          if (!response.ok || response.body === null) throw await ApiError.from('GET …/build-logs', response)
          for await (const { id, event, data } of eventsIn(response.body)) {
            failures = 0
            lastId = id ?? lastId
            if (event === 'done') return
            if (event === 'message') yield lineOf(data)
          }
        } catch (error) {
          signal?.throwIfAborted()
          if (!isPassing(error) || failures >= mostFailures) throw error
        }
        await sleep(Math.min(longestPauseMs, firstPauseMs * 2 ** failures++), signal)
      }
    } finally {
      clearTimeout(ending)
      connection.abort()
    }
  }

  return {
    lines: lines(),
    expectEnd() {
      ending ??= setTimeout(() => {
        ending = undefined
        connection.abort()
      }, endWithinMs)
    }
  }
}

/** Whether another connection may do: of one that broke, of a platform that restarts, of too many streams at once. */
const isPassing = (error: unknown): boolean =>
  error instanceof ApiError ? error.status === 429 || error.status >= 500 : isBroken(error)

/** A connection that breaks while it is read throws what the system calls it, without our words. */
const isBroken = (error: unknown): boolean =>
  error instanceof NetworkError || error instanceof TypeError || (error as Error).name === 'AbortError'

function lineOf(data: string): LogLine {
  const { ts, level, stream, msg } = JSON.parse(data) as Omit<LogLine, 'type' | 'text'>
  return { type: 'log', ts, level, ...(stream === undefined ? {} : { stream }), msg, text: msg }
}
