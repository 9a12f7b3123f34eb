import type { EngineDiskUse } from 'busbar/api/containers'
import { type Clock, isProblem, type Log } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { problems } from '../problems.js'
import { SharedCall } from '../shared-call.js'
import { DiskReport } from './disk-report.js'
import { readRows } from './engine-rows.js'

/** It walks through all files of all containers and volumes. */
const limitMs = 900_000
const busyPollMs = 200
const busyAttempts = 150

interface MeasureParts {
  readonly engine: EngineClient
  readonly clock: Clock
  readonly log: Log
}

/**
 * What is on the engine's disk, by its own account (`docker system df`). An engine measures for one caller at a time, so those
 * who ask here share it.
 */
export class DiskMeasure {
  readonly #shared: SharedCall<EngineDiskUse>

  constructor(private readonly parts: MeasureParts) {
    this.#shared = new SharedCall(
      async signal => await this.#measure(signal),
      limitMs + busyPollMs * busyAttempts,
      'what the Docker Engine says of its disk'
    )
  }

  /** Measured after the call. */
  async read(): Promise<EngineDiskUse> {
    return await this.#shared.answer()
  }

  async #measure(signal: AbortSignal): Promise<EngineDiskUse> {
    for (let attempt = 1; ; attempt++)
      try {
        return await this.#ask(signal)
      } catch (error) {
        // Other programs ask too, and some engines send away who comes second.
        if (!isBusy(error)) throw error
        if (attempt === busyAttempts) throw problems.measuring()
        await this.parts.clock.sleep(busyPollMs, signal)
      }
  }

  async #ask(signal: AbortSignal): Promise<EngineDiskUse> {
    const report = new DiskReport()
    // `verbose` says nothing to an engine that lists everything anyway.
    const question = { task: 'measure its disk', path: '/system/df', query: { verbose: true } }
    await readRows(this.parts, { ...question, limitMs, signal }, row => report.add(row))
    return report.result()
  }
}

const isBusy = (error: unknown): boolean =>
  isProblem(error) && error.code === 'E_ENGINE_REFUSED' && /already running/i.test(error.message)
