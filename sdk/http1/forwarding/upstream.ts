import { Agent } from 'node:http'

/**
 * Kept-alive connections are closed after this long unused, which is sooner than any common server
 * closes them: a request must not meet a connection that the container is just closing.
 */
const idleConnectionMs = 1000

/** Where requests go: one container of one deployment, at an address that the platform can connect to. */
export interface ForwardTarget {
  readonly deploymentId: string
  readonly containerId: string
  readonly host: string
  readonly port: number
}

/** One container as the forwarder sees it: its address, its connections, what is under way. */
export interface Upstream {
  readonly target: ForwardTarget
  readonly agent: Agent
  /** Requests and sockets under way. */
  readonly open: number
  enter(): void
  leave(): void
  /** Resolves when nothing is under way any more, or after `timeoutMs`; the number still open. */
  drained(timeoutMs: number): Promise<number>
  /** No new request comes: kept connections go as soon as they are free. */
  retire(): void
  /** When the last one ended after it was retired (`performance.now()`); undefined while some are open. */
  readonly emptyAt: number | undefined
}

export function createUpstream(target: ForwardTarget): Upstream {
  const agent = new Agent({
    keepAlive: true,
    timeout: idleConnectionMs,
    maxFreeSockets: 128,
    scheduling: 'lifo'
  })
  const waiters = new Set<() => void>()
  let open = 0
  let isRetired = false
  let emptyAt: number | undefined

  const end = (): void => {
    emptyAt ??= performance.now()
    agent.destroy()
  }

  return {
    target,
    agent,
    get open() {
      return open
    },
    enter() {
      open += 1
    },
    leave() {
      open -= 1
      if (open > 0) return
      for (const wake of waiters) wake()
      if (isRetired) end()
    },
    async drained(timeoutMs) {
      if (open > 0) {
        await new Promise<void>(resolve => {
          const done = (): void => {
            clearTimeout(timer)
            waiters.delete(done)
            resolve()
          }
          const timer = setTimeout(done, timeoutMs)
          waiters.add(done)
        })
      }
      return open
    },
    retire() {
      isRetired = true
      if (open === 0) end()
    },
    get emptyAt() {
      return emptyAt
    }
  }
}
