import type { Owner, VolumeUsage } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import { instanceLabel, isAmong, ownerFilter, ownerText } from './labels.js'
import { problems } from './problems.js'

const busyPollMs = 200
const busyAttempts = 150

/** The engine's own names for volumes that an image declares and nothing else names. */
export const isAnonymous = (volume: string): boolean => /^[0-9a-f]{64}$/.test(volume)

/** Named volumes on the engine: made, measured and removed. */
export class Volumes {
  constructor(
    private readonly engine: EngineClient,
    private readonly instanceId: string,
    private readonly identity: Identity,
    private readonly clock: Clock
  ) {}

  async ensure(name: string, owner: Owner): Promise<void> {
    const labels = this.identity.ofVolume(owner, name)
    // For a name that is taken the engine answers as if it had made the volume.
    const made = await this.engine.call(`make the volume ${checked(name)}`, async docker => {
      await docker.createVolume({ Name: name, Driver: 'local', Labels: labels })
      return await docker.getVolume(name).inspect()
    })
    const found = this.identity.volume(made)
    if (found === undefined || ownerText(found) !== ownerText(owner))
      throw problems.volumeForeign({ volume: name })
  }

  async list(owner: Owner): Promise<readonly VolumeUsage[]> {
    const names = await this.#names(owner)
    // Reading the sizes makes the engine walk through every volume it has.
    if (names.length === 0) return []
    const sizes = await this.sizes()
    return names.map(name => ({ name, sizeBytes: sizes.get(name) ?? 0 }))
  }

  /** Unless it is gone. */
  async remove(name: string): Promise<void> {
    if (!(await this.#isOurs(name))) return
    await this.engine.call(
      `remove the volume ${name}`,
      async docker => {
        await docker.getVolume(checked(name)).remove()
      },
      {
        absent: [404],
        explain: ({ statusCode, words }) =>
          statusCode === 409 ? problems.volumeInUse({ volume: name, reason: words }) : undefined
      }
    )
  }

  /** Removes all containers that use it, also those of others. */
  async release(name: string): Promise<void> {
    if (!(await this.#isOurs(name))) return
    const users = await this.engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { volume: [name] } })
    )
    for (const { Id } of users) {
      await this.engine.call(
        'remove a container that a build has left',
        async docker => {
          await docker.getContainer(Id).remove({ force: true, v: true })
        },
        {
          absent: [404, 409],
          patient: true
        }
      )
    }
  }

  async #names(owner: Owner): Promise<string[]> {
    const label = [`${instanceLabel}=${this.instanceId}`, ...ownerFilter(owner)]
    const { Volumes: found } = await this.engine.call(
      'list volumes',
      async docker => await docker.listVolumes({ filters: { label } })
    )
    return (found ?? [])
      .filter(volume => isAmong(owner, this.identity.volume(volume)))
      .map(({ Name }) => Name)
      .sort()
  }

  /** False when it is gone; refuses one with another owner. */
  async #isOurs(name: string): Promise<boolean> {
    const seen = await this.engine.call(
      `inspect the volume ${name}`,
      async docker => await docker.getVolume(checked(name)).inspect(),
      { absent: [404] }
    )
    if (seen === undefined) return false
    if (this.identity.volume(seen) === undefined) throw problems.volumeForeign({ volume: name })
    return true
  }

  /** Of every volume of the engine, which walks through all of them. */
  async sizes(): Promise<ReadonlyMap<string, number>> {
    for (let attempt = 1; ; attempt++) {
      const usage = await this.engine
        .call(
          'measure its volumes',
          async docker => (await docker.df()) as { Volumes: Docker.VolumeInspectInfo[] | null },
          {
            patient: true,
            explain: ({ words }) =>
              attempt < busyAttempts && /already running/i.test(words) ? problems.measuring() : undefined
          }
        )
        .catch(async (error: unknown) => {
          // The engine measures for one caller at a time and sends the others away.
          if (!isMeasuring(error)) throw error
          await this.clock.sleep(busyPollMs)
          return undefined
        })
      if (usage !== undefined)
        return new Map(
          (usage.Volumes ?? []).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)])
        )
    }
  }
}

const isMeasuring = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'E_ENGINE_MEASURING'

// It becomes part of a URL.
function checked(name: string): string {
  if (!/^[a-zA-Z0-9][\w.-]+$/.test(name)) throw problems.badVolume({ volume: name.slice(0, 200) })
  return name
}
