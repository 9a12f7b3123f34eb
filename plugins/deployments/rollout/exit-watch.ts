import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'

/** How long the engine may take until its events are listened to. */
const listenMs = 2000
/** An event can be lost with its stream: the container itself is looked at this often. */
const lookEveryMs = 1000
/** The engine's events say better than a look why it has ended, and a lost stream is back by then if the engine is. */
const eventsMs = 2500

interface SeenExit {
  /** Null when the engine started it again before it could be seen. */
  readonly exitCode: number | null
  readonly oomKilled: boolean
  /** The engine stopped meanwhile and ended it. */
  readonly isEngineLost: boolean
}

/** Notices the end of one container's process, even when the engine starts it again at once. */
export interface ExitWatch {
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<SeenExit>
  stop(): void
}

/** Resolves when it listens: what happens to a container that is started after that is not missed. */
export async function watchExit(
  runtime: ContainerRuntime,
  clock: Clock,
  containerId: string
): Promise<ExitWatch> {
  const ending = new AbortController()
  const { signal } = ending
  let report: (exit: SeenExit) => void = () => {}
  const exited = new Promise<SeenExit>(resolve => {
    report = resolve
  })
  let startedAt: string | undefined

  const look = async (): Promise<void> => {
    const state = await runtime.inspect(containerId).catch(() => null)
    if (state === null || signal.aborted) return
    if (state?.status === 'created') return
    if (state?.status === 'running' && (startedAt === undefined || startedAt === state.startedAt)) {
      startedAt = state.startedAt
      return
    }
    await clock.sleep(eventsMs, signal).catch(() => {})
    report({
      exitCode: state === undefined || state.status === 'running' ? null : state.exitCode,
      oomKilled: state?.oomKilled === true,
      isEngineLost: false
    })
  }

  const engineIsBack = async (): Promise<void> => {
    const state = await runtime.inspect(containerId).catch(() => null)
    const isSame = state?.status === 'running' && (startedAt === undefined || state.startedAt === startedAt)
    if (state !== null && !isSame && state?.status !== 'created')
      report({ exitCode: null, oomKilled: false, isEngineLost: true })
  }

  const listening = new Promise<void>(resolve => {
    void (async () => {
      try {
        for await (const event of runtime.events(signal)) {
          resolve()
          if (event.kind === 'resync' && event.outage !== undefined) await engineIsBack()
          if (event.kind !== 'container' || event.containerId !== containerId || event.action !== 'die')
            continue
          const state = await runtime.inspect(containerId).catch(() => undefined)
          report({ exitCode: event.exitCode, oomKilled: state?.oomKilled === true, isEngineLost: false })
        }
      } catch {
        // The container is looked at as well, so a lost stream costs a second at most.
      }
      resolve()
    })()
  })
  await Promise.race([listening, clock.sleep(listenMs, signal).catch(() => {})])
  const stopLooking = clock.every(lookEveryMs, look)

  return {
    exited,
    stop() {
      stopLooking()
      ending.abort()
    }
  }
}
