import { ApiError } from './api-error.js'
import { followLog, type LogLine } from './build-log.js'
import type { BusbarClient } from './busbar-client.js'
import { type DeploymentPlace, deploymentPath, paramsOf } from './deployment-place.js'
import { Limit } from './limit.js'
import { sleep } from './retry.js'
import type { Answer } from './types.js'

type Deployment = Answer<`GET ${typeof deploymentPath}`>
type Status = Deployment['status']

/** What was answered of a deployment, or its `id`. With `application_id` it is found sooner. */
export type DeploymentRef = string | { readonly id: string; readonly application_id?: string }

/** A deployment has come to another status. The last one has the deployment as it has become. */
export interface StatusChange {
  readonly type: 'status'
  readonly status: Status
  /** `success`, or `failed` with the reason: for a person to read. */
  readonly text: string
  /** The deployment with its whole log, once it has ended. */
  readonly deployment: Deployment | undefined
}

export interface Waiting {
  /** Ends the waiting, not the deployment. */
  readonly signal?: AbortSignal
  /** How many milliseconds to wait; 30 minutes unless given. */
  readonly timeoutMs?: number
  /** Gets each line of the log as it is written. */
  readonly onLog?: (line: LogLine) => void
}

/** A status is looked at this often; the end is told by the log. */
const statusEveryMs = 2_000
/** Lines of the log wait for it meanwhile. */
const statusWithinMs = 3_000
const waitMs = 30 * 60_000

/** Follow what is being deployed, wait for it, or call it off; everything is in `operations`. */
export class Deployments {
  readonly #client: BusbarClient
  constructor(client: BusbarClient) {
    this.#client = client
  }

  /**
   * The log from its first line on, live, and each status on the way; the last event is the status that it ended with. A
   * connection that breaks is taken up where it was. `text` of each event is for a person to read.
   *
   *     for await (const event of busbar.deployments.follow(deployment)) console.log(event.text)
   */
  async *follow(
    deployment: DeploymentRef,
    { signal }: { readonly signal?: AbortSignal } = {}
  ): AsyncGenerator<LogLine | StatusChange> {
    const place = await this.#find(deployment, signal)
    const log = followLog(this.#client, place, signal)
    const lines = log.lines[Symbol.asyncIterator]()
    const ticking = new AbortController()
    const tick = async (): Promise<'tick'> => {
      await sleep(statusEveryMs, ticking.signal)
      return 'tick'
    }
    let status: Status = place.status
    let next = lines.next()
    let later = tick()
    later.catch(() => {})
    next.catch(() => {})
    try {
      yield change(status)
      for (;;) {
        const first = await Promise.race([next, later])
        if (first !== 'tick') {
          if (first.done === true) break
          yield first.value
          next = lines.next()
          next.catch(() => {})
          continue
        }
        later = tick()
        later.catch(() => {})
        const now = await this.#statusOf(place, signal)
        if (now === undefined || now === status) continue
        // The end is told when all of the log has been.
        if (isOver(now)) log.expectEnd()
        else {
          status = now
          yield change(status)
        }
      }
      const ended = await this.#client.get(deploymentPath, {
        params: paramsOf(place),
        ...(signal === undefined ? {} : { signal })
      })
      yield change(ended.status, ended)
    } finally {
      ticking.abort()
      await lines.return?.(undefined).catch(() => {})
    }
  }

  /**
   * Resolves with the deployment when it has ended: look whether its `status` is `success`; `error_message` and `remedy` say
   * why it is `failed`. Rejects with a `TimeoutError` when that takes too long; the deployment goes on.
   */
  async wait(
    deployment: DeploymentRef,
    { signal, timeoutMs = waitMs, onLog }: Waiting = {}
  ): Promise<Deployment> {
    const limit = new Limit(timeoutMs, signal)
    let status: Status | undefined
    try {
      for await (const event of this.follow(deployment, { signal: limit.signal })) {
        if (event.type === 'log') onLog?.(event)
        else if (event.deployment !== undefined) return event.deployment
        else status = event.status
      }
    } catch (error) {
      if (!limit.isOver || signal?.aborted === true) throw error
      throw timeout(deployment, status, timeoutMs, error)
    } finally {
      limit.end()
    }
    throw timeout(deployment, status, timeoutMs, undefined)
  }

  /** Asks it to end, which it soon does, as `failed`. What ran before goes on. */
  async cancel(deployment: DeploymentRef): Promise<void> {
    const place = await this.#find(deployment, undefined)
    await this.#client.post(`${deploymentPath}/cancel`, { params: paramsOf(place) })
  }

  /** An answer about a deployment does not name its project; the list of all deployments does. */
  async #find(
    ref: DeploymentRef,
    signal: AbortSignal | undefined
  ): Promise<DeploymentPlace & { status: Status }> {
    const { id, application_id } = typeof ref === 'string' ? { id: ref, application_id: undefined } : ref
    const rows = this.#client.each('/api/deployments', {
      query: application_id === undefined ? {} : { application_id },
      ...(signal === undefined ? {} : { signal })
    })
    for await (const row of rows) if (row.id === id) return row
    throw new ApiError(
      'GET /api/deployments',
      404,
      'E_NOT_FOUND',
      `there is no deployment ${id} among those that you see`,
      {},
      undefined,
      undefined
    )
  }

  /** Undefined while it cannot be asked for: the log is what is waited for. */
  async #statusOf(place: DeploymentPlace, signal: AbortSignal | undefined): Promise<Status | undefined> {
    const limit = new Limit(statusWithinMs, signal)
    try {
      return (await this.#find(place, limit.signal)).status
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof ApiError && error.status < 429) throw error
      return undefined
    } finally {
      limit.end()
    }
  }
}

const isOver = (status: Status): boolean => status === 'success' || status === 'failed'

function change(status: Status, deployment?: Deployment): StatusChange {
  // With the remedy at its end.
  const reason = deployment?.error_message
  return { type: 'status', status, text: reason == null ? status : `${status}: ${reason}`, deployment }
}

function timeout(ref: DeploymentRef, status: Status | undefined, timeoutMs: number, cause: unknown): Error {
  const id = typeof ref === 'string' ? ref : ref.id
  const error = new Error(`deployment ${id} is still ${status ?? 'pending'} after ${timeoutMs / 1000} s`, {
    cause
  })
  error.name = 'TimeoutError'
  return error
}
