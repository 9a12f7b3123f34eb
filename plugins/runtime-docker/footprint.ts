import type { BuildUsage } from './api.js'

/** Of a build or a load that runs. */
export interface Footprint {
  measure(): Promise<BuildUsage>
}
