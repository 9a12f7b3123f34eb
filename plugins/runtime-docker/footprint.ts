import type { BuildUsage } from 'busbar/api/images'

/** Of a build or a load that runs. */
export interface Footprint {
  measure(): Promise<BuildUsage>
}
