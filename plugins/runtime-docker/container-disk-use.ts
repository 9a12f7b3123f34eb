import type { ContainerDiskUse, MeasuringLimits, Owner } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { ContainerOwners } from './container-owners.js'
import type { EngineClient } from './engine-client.js'
import { instanceLabel, isAmong, ownerFilter } from './labels.js'
import { UnhurriedCall } from './unhurried-call.js'
import { isAnonymous } from './volumes.js'

interface DiskUseParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly owners: ContainerOwners
  /** Of every volume of the engine, by name. */
  readonly volumeSizes: () => Promise<ReadonlyMap<string, number>>
}

// The types of dockerode leave sizes out; the engine does too for a container that has written nothing.
const withSize: Docker.ContainerInspectOptions & { readonly size: true } = { size: true }
type Sized = Docker.ContainerInspectInfo & { readonly SizeRw?: number }

/**
 * What containers have written, by the engine's account. It is asked for each of them: asked for all at once, it answers
 * when it has seen the last file of the last of them. It measures several at a time, and other calls meanwhile.
 */
export class ContainerSizes {
  /** By container. */
  readonly #sizes = new Map<string, UnhurriedCall<number | undefined>>()
  readonly #volumes: UnhurriedCall<ReadonlyMap<string, number>>

  constructor(private readonly parts: DiskUseParts) {
    this.#volumes = new UnhurriedCall(parts.volumeSizes)
  }

  async read(owner: Owner, { eachMs, allMs }: MeasuringLimits): Promise<readonly ContainerDiskUse[]> {
    const endsAt = performance.now() + allMs
    const seen = await this.#list(owner)
    const measured = new Map<string, { readonly bytes: number; readonly isLate: boolean }>()
    for (const { id } of [...seen].sort((a, b) => this.#compare(a.id, b.id))) {
      const call = this.#sizeOf(id)
      const { value, isLate } = performance.now() < endsAt ? await call.within(eachMs) : call.latest
      // Gone meanwhile.
      if (value === undefined && !isLate) this.#sizes.delete(id)
      else measured.set(id, { bytes: value ?? 0, isLate })
    }
    // Measuring volumes makes the engine walk through every one it has.
    const volumes = seen.some(one => one.volumes.length > 0) ? await this.#volumes.within(eachMs) : undefined
    return seen.flatMap(({ id, owner: own, isRunning, volumes: names }) => {
      const found = measured.get(id)
      if (found === undefined) return []
      const bytes = names.reduce((sum, name) => sum + (volumes?.value?.get(name) ?? 0), found.bytes)
      const isLate = found.isLate || (names.length > 0 && volumes?.isLate === true)
      return [{ id, owner: own, isRunning, bytes, isLate }]
    })
  }

  async #list(owner: Owner) {
    const { engine, instanceId, owners } = this.parts
    const label = [`${instanceLabel}=${instanceId}`, ...ownerFilter(owner)]
    const found = await engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { label } })
    )
    const seen: Array<{ id: string; owner: Owner; isRunning: boolean; volumes: string[] }> = []
    for (const { Id: id, State: state, Mounts: mounts } of found) {
      // Known but for the first time; asked for all at once, an engine with many of them would be kept from its work.
      const own = await owners.of(id)
      if (own === undefined || !isAmong(owner, own)) continue
      const names = (mounts ?? []).flatMap(({ Name }) => Name ?? [])
      seen.push({ id, owner: own, isRunning: state === 'running', volumes: names.filter(isAnonymous) })
    }
    if (Object.keys(owner).length === 0) this.#forgetAllBut(new Set(seen.map(({ id }) => id)))
    return seen
  }

  /** First those that are soon done, of these the one that has waited longest. */
  #compare(a: string, b: string): number {
    const [one, other] = [this.#sizeOf(a), this.#sizeOf(b)]
    return Number(one.isSlow) - Number(other.isSlow) || one.askedAt - other.askedAt
  }

  #sizeOf(id: string): UnhurriedCall<number | undefined> {
    const known = this.#sizes.get(id)
    if (known !== undefined) return known
    const call = new UnhurriedCall(async () => {
      const seen: Sized | undefined = await this.parts.engine.call(
        'measure a container',
        async docker => await docker.getContainer(id).inspect(withSize),
        { patient: true, absent: [404] }
      )
      return seen === undefined ? undefined : (seen.SizeRw ?? 0)
    })
    this.#sizes.set(id, call)
    return call
  }

  #forgetAllBut(ids: ReadonlySet<string>): void {
    for (const id of this.#sizes.keys()) if (!ids.has(id)) this.#sizes.delete(id)
  }
}
