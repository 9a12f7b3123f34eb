import type { BuildUsage } from 'busbar/api/images'
import type { CountedPlaces } from './files/container-file-use.js'

/** Of a build or a load that runs. */
export interface Footprint {
  measure(): Promise<BuildUsage>
  /** Where its files are; of a load the engine does not tell. */
  places?(): Promise<readonly CountedPlaces[]>
}
