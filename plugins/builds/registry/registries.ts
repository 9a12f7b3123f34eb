import type { Readable } from 'node:stream'
import { type ContainerRuntime, machineFactsMs } from 'busbar/api/containers'
import type { Clock, Log } from 'busbar/sdk'
import type { HostRules } from '../network/host-resolution.js'
import {
  describeImage,
  openLayer,
  RegistryReader,
  type RemoteImage,
  type RemoteLayer,
  UnpackBudget
} from './client/index.js'
import { manifestTypes } from './client/manifest.js'
import { RegistryFailure } from './client/registry-failure.js'
import type { RegistryAuth } from './client/registry-reader.js'

/** An image in its registry, to be read. */
export interface OfferedImage extends RemoteImage {
  /** See `openLayer` of the client. */
  readonly open: (layer: RemoteLayer) => Readable
  /** What the layers that were opened take on a disk, once they are unpacked; known when the last one has come. */
  readonly unpacked: () => UnpackBudget['unpacked']
}

export interface Registries {
  /** Rejects with a `Problem`, or the reason of the signal, which also ends what is read of the image. */
  offer(
    wanted: { readonly name: string; readonly auth?: RegistryAuth; readonly isBase?: true },
    signal: AbortSignal
  ): Promise<OfferedImage>
  /**
   * Whether a registry hands out an image to everybody now, by a question that does not count as a pull. Rejects as
   * `offer` does where it does not: see `isRefused`.
   */
  checkOpen(name: string, signal: AbortSignal): Promise<void>
}

/** More than any image that is run; a hostile one says less of itself than it unpacks to. */
const maxImageBytes = 32 * 2 ** 30

/** Those that the host rules let the platform ask, for images that the engine's machine runs. */
export function hostedRegistries({
  runtime,
  ...reading
}: {
  readonly rules: HostRules
  readonly clock: Clock
  readonly log: Log
  readonly runtime: Pick<ContainerRuntime, 'info'>
}): Registries {
  return {
    async offer({ name, auth, isBase }, signal) {
      const { platform } = await runtime.info({ maxAgeMs: machineFactsMs })
      const reader = new RegistryReader(name, {
        ...reading,
        signal,
        ...(auth !== undefined && { auth }),
        ...(isBase !== undefined && { isBase })
      })
      const image = await describeImage(reader, name, platform)
      const budget = new UnpackBudget(maxImageBytes)
      return { ...image, open: layer => openLayer(reader, layer, budget), unpacked: () => budget.unpacked }
    },
    async checkOpen(name, signal) {
      const reader = new RegistryReader(name, { ...reading, signal, isBase: true })
      try {
        const { version } = reader.location
        const said = await reader.ask({
          path: `manifests/${version}`,
          method: 'HEAD',
          accept: manifestTypes.join(', ')
        })
        // So Docker Hub says how many pulls are left: this question is none, and the next one would be.
        if (/^0(?:;|$)/.test(String(said['ratelimit-remaining'] ?? '')))
          throw new RegistryFailure('limit', 'no pulls are left')
      } catch (error) {
        throw reader.problemOf(error)
      }
    }
  }
}
