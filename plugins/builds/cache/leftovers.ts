import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import type { BuildLeftovers } from '../api.js'
import type { LatestBuilds } from './latest-builds.js'

/** A build that failed is tried again, most often from where it failed: its newest attempts stay. */
const keptAttempts = 3

/** See `BuildLeftovers`. */
export class StepLeftovers implements BuildLeftovers {
  constructor (private readonly runtime: ContainerRuntime, private readonly latest: LatestBuilds) {}

  async tidy (applicationId: string): Promise<void> {
    const latest = await this.latest.find(applicationId)
    await this.runtime.clearBuildCache({ applicationId }, {
      ends: latest?.stageEnds ?? [],
      newest: keptAttempts,
      after: latest?.builtAt ?? new Date(0)
    })
  }
}
