import type { Clock, Problem } from 'busbar/sdk'
import { byteCount, type PullEvent } from './pull-progress.js'

/** How little may come: as for clones by git, where they are `http.lowSpeedTime` and `http.lowSpeedLimit`. */
export interface PaceLimits {
  readonly seconds: number
  readonly bytesPerSecond: number
}
export const usualPace: PaceLimits = { seconds: 60, bytesPerSecond: 1000 }

/** `silent`: of something that was asked for the engine has not told anything. `slow`: all of it comes, in drops. */
export type Stall = 'silent' | 'slow'

interface Layer {
  /**
   * `asked`: the registry owes an answer. `waiting`: the engine has no download slot for it. `here`: it is unpacked,
   * or will be. `ready`: nothing is left to do.
   */
  readonly state: 'asked' | 'waiting' | 'coming' | 'here' | 'ready'
  readonly bytes: number
  readonly totalBytes: number
}

/** The engine tells of each hundredth of a layer, and of each 512 KiB where that is less. */
const toldBytes = ({ totalBytes }: Layer): number =>
  totalBytes > 0 ? Math.min(totalBytes / 100, 512 * 1024) : 512 * 1024

const states: Readonly<Record<string, Layer['state']>> = {
  'Pulling fs layer': 'asked',
  Waiting: 'waiting',
  Downloading: 'coming',
  'Pull complete': 'ready',
  'Already exists': 'ready'
}
const stateOf = (status: string): Layer['state'] =>
  states[status] ?? (status.startsWith('Retrying ') ? 'asked' : 'here')

/** Whether a pull comes forward, as far as that is for the registry to do. Times are milliseconds since some moment. */
export class PullPace {
  readonly #layers = new Map<string, Layer>()
  #since: number
  #received = 0

  constructor(
    private readonly limits: PaceLimits,
    now: number
  ) {
    this.#since = now
  }

  read({ id, status, progressDetail }: PullEvent, now: number): void {
    if (typeof status !== 'string' || typeof id !== 'string' || status.startsWith('Pulling from ')) return
    const before = this.#layers.get(id)
    const state = stateOf(status)
    if (state === 'coming') {
      const bytes = Math.max(before?.bytes ?? 0, byteCount(progressDetail, 'current'))
      this.#received += bytes - (before?.bytes ?? 0)
      this.#layers.set(id, { state, bytes, totalBytes: byteCount(progressDetail, 'total') })
      return
    }
    // One that is here is progress, however small it was; and of attempts the engine makes few.
    if (state !== before?.state || state === 'asked') this.#startOver(now)
    this.#layers.set(id, { state, bytes: 0, totalBytes: 0 })
  }

  /** Undefined while it comes, and while the engine has something else to do. */
  stall(now: number): Stall | undefined {
    const layers = [...this.#layers.values()]
    const coming = layers.filter(({ state }) => state === 'coming')
    const isSilent =
      !layers.some(({ state }) => state === 'coming') || layers.some(({ state }) => state === 'asked')
    const owes = layers.some(({ state }) => state === 'asked' || state === 'coming')
    // Before the first layer the manifest is asked for, behind the last one the configuration.
    if (!owes && !layers.every(({ state }) => state === 'ready')) {
      this.#startOver(now)
      return undefined
    }
    const { seconds, bytesPerSecond } = this.limits
    if (now - this.#since < seconds * 1000) return undefined
    const untold = coming.reduce((sum, layer) => sum + toldBytes(layer), 0)
    if (this.#received > 0 && this.#received + untold >= seconds * bytesPerSecond) {
      this.#startOver(now)
      return undefined
    }
    return isSilent ? 'silent' : 'slow'
  }

  #startOver(now: number): void {
    this.#since = now
    this.#received = 0
  }
}

interface Pull {
  readonly clock: Clock
  readonly limits: PaceLimits
  readonly signal: AbortSignal
  readonly problem: (stall: Stall) => Problem
}

/** Runs a pull that ends by `signal`, or by the problem when next to nothing comes. */
export async function atPace<T>(
  { clock, limits, signal, problem }: Pull,
  run: (signal: AbortSignal, onEvent: (event: PullEvent) => void) => Promise<T>
): Promise<T> {
  const pace = new PullPace(limits, performance.now())
  const stalled = new AbortController()
  const stop = clock.every(Math.min(1000, limits.seconds * 100), () => {
    const stall = pace.stall(performance.now())
    if (stall !== undefined) stalled.abort(problem(stall))
  })
  try {
    return await run(AbortSignal.any([signal, stalled.signal]), event => pace.read(event, performance.now()))
  } finally {
    stop()
  }
}
