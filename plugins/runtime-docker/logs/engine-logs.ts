import { type EngineInfo, type LogBatch, type LogOptions, machineFactsMs } from 'busbar/api/containers'
import type { EngineClient } from '../engine-client.js'
import { containerLogs, type ReadContainer } from './container-logs.js'
import { FollowRenewal, losesFiles } from './follow-renewal.js'

/** The logs of the containers of one engine, read as its version needs it. */
export class EngineLogs {
  readonly #renewal = new FollowRenewal()

  constructor(
    private readonly engine: EngineClient,
    private readonly description: {
      read(options: { readonly maxAgeMs: number }): Promise<Pick<EngineInfo, 'version'>>
    }
  ) {}

  async *read(container: ReadContainer, options: LogOptions): AsyncGenerator<LogBatch> {
    const { version } = await this.description.read({ maxAgeMs: machineFactsMs })
    const renewal = losesFiles(version) ? this.#renewal : undefined
    yield* containerLogs(this.engine, container, options, renewal)
  }
}
