import type { Owner, VolumeUsage } from 'busbar/api/containers'
import { type Clock, isProblem } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { ContainerAccess } from './container-access.js'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import type { DiskMeasure } from './inventory/disk-measure.js'
import { instanceLabel, isAmong, ownerFilter, ownerText } from './labels.js'
import { problems } from './problems.js'
import { longestSeconds, type VolumeEmptier } from './removal/volume-emptier.js'
import type { VolumeContents } from './volume-contents.js'
import { checked } from './volume-name.js'

/** The engine's own names for volumes that an image declares and nothing else names. */
export const isAnonymous = (volume: string): boolean => /^[0-9a-f]{64}$/.test(volume)

/** Once it was emptied, a volume is free when the engine has done with the container that did it. */
const freePollMs = 100
const freeMs = 10_000

interface VolumesParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
  readonly clock: Clock
  readonly access: Pick<ContainerAccess, 'find' | 'remove'>
  readonly emptier: Pick<VolumeEmptier, 'empty'>
  readonly contents: Pick<VolumeContents, 'release'>
  readonly measure: Pick<DiskMeasure, 'read'>
}

/** Named volumes on the engine: made, measured and removed. */
export class Volumes {
  constructor(private readonly parts: VolumesParts) {}

  async ensure(name: string, owner: Owner): Promise<void> {
    const labels = this.parts.identity.ofVolume(owner, name)
    // For a name that is taken the engine answers as if it had made the volume.
    const made = await this.parts.engine.call(`make the volume ${checked(name)}`, async docker => {
      await docker.createVolume({ Name: name, Driver: 'local', Labels: labels })
      return await docker.getVolume(name).inspect()
    })
    const found = this.parts.identity.volume(made)
    if (found === undefined || ownerText(found) !== ownerText(owner))
      throw problems.volumeForeign({ volume: name })
  }

  async list(owner: Owner): Promise<readonly VolumeUsage[]> {
    const names = await this.names(owner)
    // Reading the sizes makes the engine walk through every volume it has.
    if (names.length === 0) return []
    const sizes = await this.sizes()
    return names.map(name => ({ name, sizeBytes: sizes.get(name) ?? 0 }))
  }

  /** Unless it is gone. Its files go first, while others make and remove theirs. */
  async remove(name: string): Promise<void> {
    const owner = await this.#ownerOf(name)
    if (owner === undefined) return
    await this.parts.contents.release(name)
    const outcome = await this.parts.emptier.empty([name], owner.projectId ?? '')
    if (outcome === 'unfinished')
      throw problems.volumeNotEmptied({ volume: name, minutes: longestSeconds / 60 })
    await this.#remove(name, outcome === 'empty' ? freeMs : 0)
  }

  /** What is not used by a container any more, or will not be in a moment; whatever is left else stays. */
  async removeFree(name: string): Promise<void> {
    await this.#remove(name, freeMs).catch((error: unknown) => {
      if (!isProblem(error) || error.code !== 'E_VOLUME_IN_USE') throw error
    })
  }

  async #remove(name: string, waitMs: number): Promise<void> {
    const remove = async (): Promise<void> => {
      await this.parts.engine.call(
        `remove the volume ${name}`,
        async docker => {
          await docker.getVolume(checked(name)).remove()
        },
        {
          absent: [404],
          patient: true,
          explain: ({ statusCode, words }) =>
            statusCode === 409 ? problems.volumeInUse({ volume: name, reason: words }) : undefined
        }
      )
    }
    for (let waited = 0; ; waited += freePollMs)
      try {
        return await remove()
      } catch (error) {
        if (waited >= waitMs || !isProblem(error) || error.code !== 'E_VOLUME_IN_USE') throw error
        await this.parts.clock.sleep(freePollMs)
      }
  }

  /** Removes all containers that use it, also those of others. */
  async release(name: string): Promise<void> {
    if ((await this.#ownerOf(name)) === undefined) return
    for (const { Id: id } of await this.#containersWith(name)) {
      const seen = await this.parts.access.find(id)
      if (seen !== undefined) await this.parts.access.remove(seen)
    }
  }

  /** Those of this installation: by their labels, which tell them from what its volumes are emptied with. */
  async users(name: string): Promise<string[]> {
    const { instanceId } = this.parts
    return (await this.#containersWith(name)).flatMap(({ Id: id, Labels: labels }) =>
      labels[instanceLabel] === instanceId ? [id] : []
    )
  }

  async #containersWith(name: string): Promise<Docker.ContainerInfo[]> {
    return await this.parts.engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { volume: [checked(name)] } })
    )
  }

  async names(owner: Owner): Promise<string[]> {
    const label = [`${instanceLabel}=${this.parts.instanceId}`, ...ownerFilter(owner)]
    const { Volumes: found } = await this.parts.engine.call(
      'list volumes',
      async docker => await docker.listVolumes({ filters: { label } })
    )
    return (found ?? [])
      .filter(volume => isAmong(owner, this.parts.identity.volume(volume)))
      .map(({ Name }) => Name)
      .sort()
  }

  /** Undefined when it is gone; refuses one with another owner. */
  async #ownerOf(name: string): Promise<Owner | undefined> {
    const seen = await this.parts.engine.call(
      `inspect the volume ${name}`,
      async docker => await docker.getVolume(checked(name)).inspect(),
      { absent: [404] }
    )
    if (seen === undefined) return undefined
    const owner = this.parts.identity.volume(seen)
    if (owner === undefined) throw problems.volumeForeign({ volume: name })
    return owner
  }

  /** Of every volume of the engine, which walks through all of them. */
  async sizes(): Promise<ReadonlyMap<string, number>> {
    return (await this.parts.measure.read()).volumeBytes
  }
}
