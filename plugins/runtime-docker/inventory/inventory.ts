import type {
  EngineDiskUse,
  EngineInventory,
  Listed,
  ListedContainer,
  ListedImage,
  ListedNetwork,
  ListedVolume,
  Owner
} from 'busbar/api/containers'
import type { Log } from 'busbar/sdk'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import type { Identity } from '../identity.js'
import { hasName, isForeign, isLoadedName } from '../image-info.js'
import { imageInstanceLabel, instanceLabel } from '../labels.js'
import type { PlatformContainer } from '../platform-container.js'
import { SharedCall } from '../shared-call.js'
import { ContainerOrigins } from './container-origins.js'
import type { DiskMeasure } from './disk-measure.js'
import { readRows } from './engine-rows.js'
import {
  containerRow,
  imageRow,
  labelsOf,
  namesOf,
  networkRow,
  textOf,
  type Unowned,
  volumeRow
} from './listed-rows.js'
import { type Fields, fieldsOf } from './listed-text.js'

interface InventoryParts {
  readonly engine: EngineClient
  readonly log: Log
  readonly instanceId: string
  readonly identity: Identity
  readonly owners: ContainerOwners
  readonly platform: PlatformContainer
  readonly measure: DiskMeasure
}

/** On a machine with many thousands of things it takes long; an engine that has gone never answers. */
const listLimitMs = 120_000

const listedFor = (owner: Owner | undefined): Listed => ({
  owner: owner ?? null,
  isManaged: owner !== undefined
})

/** Everything on the engine, whoever made it. */
export class Inventory implements EngineInventory {
  readonly #origins: ContainerOrigins
  readonly #containers = sharedList('containers', async signal => await this.#listContainers(signal))
  readonly #images = sharedList('images', async signal => await this.#listImages(signal))
  readonly #networks = sharedList('networks', async signal => await this.#listNetworks(signal))
  readonly #volumes = sharedList('volumes', async signal => await this.#listVolumes(signal))

  constructor(private readonly parts: InventoryParts) {
    this.#origins = new ContainerOrigins(parts)
  }

  async containers(): Promise<readonly ListedContainer[]> {
    return await this.#containers.answer()
  }

  async images(): Promise<readonly ListedImage[]> {
    return await this.#images.answer()
  }

  async networks(): Promise<readonly ListedNetwork[]> {
    return await this.#networks.answer()
  }

  async volumes(): Promise<readonly ListedVolume[]> {
    return await this.#volumes.answer()
  }

  async diskUse(): Promise<EngineDiskUse> {
    return await this.parts.measure.read()
  }

  async #listContainers(signal: AbortSignal): Promise<readonly ListedContainer[]> {
    const rows: Array<{ readonly row: Unowned<ListedContainer>; readonly labels: Record<string, string> }> =
      []
    await this.#list('/containers/json', { all: true }, signal, fields => {
      rows.push({ row: containerRow(fields), labels: claimsOf(fields) })
    })
    const origins = await this.#origins.of(rows.map(({ row, labels }) => ({ id: row.id, labels })))
    return rows
      .map(({ row }, index) => ({ ...row, ...(origins[index] ?? listedFor(undefined)) }))
      .sort(newestFirst)
  }

  async #listImages(signal: AbortSignal): Promise<readonly ListedImage[]> {
    const images: ListedImage[] = []
    await this.#list('/images/json', {}, signal, fields => {
      const names = { RepoTags: namesOf(fields.RepoTags), RepoDigests: namesOf(fields.RepoDigests) }
      const tags = names.RepoTags.filter(tag => hasName([tag]))
      // What `load` has named is of those that keep it, whatever its labels say.
      const isLoaded = tags.length > 0 && tags.every(isLoadedName)
      const owner = isLoaded ? undefined : this.parts.identity.image(labelsOf(fields), isForeign(names))
      const isManaged = owner !== undefined || tags.some(isLoadedName)
      images.push({ ...imageRow(fields), ...listedFor(owner), isManaged })
    })
    return images.sort(newestFirst)
  }

  async #listNetworks(signal: AbortSignal): Promise<readonly ListedNetwork[]> {
    const networks: ListedNetwork[] = []
    await this.#list('/networks', {}, signal, fields => {
      networks.push({ ...networkRow(fields), ...listedFor(this.parts.identity.network(namedOf(fields))) })
    })
    return networks.sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id))
  }

  async #listVolumes(signal: AbortSignal): Promise<readonly ListedVolume[]> {
    const volumes: ListedVolume[] = []
    await this.#list('/volumes', {}, signal, fields => {
      volumes.push({ ...volumeRow(fields), ...listedFor(this.parts.identity.volume(namedOf(fields))) })
    })
    return volumes.sort((a, b) => compare(a.name, b.name))
  }

  async #list(
    path: keyof typeof lists,
    query: Readonly<Record<string, boolean>>,
    signal: AbortSignal,
    onRow: (fields: Fields) => void
  ): Promise<void> {
    const { task, rows } = lists[path]
    await readRows(this.parts, { task, path, query, limitMs: listLimitMs, signal }, row => {
      // For an empty list an engine may say null.
      if (row.path === rows && row.value !== null) onRow(fieldsOf(row.value))
    })
  }
}

/** What is asked for, and where in the answer its rows are. */
const lists = {
  '/containers/json': { task: 'list containers', rows: '' },
  '/images/json': { task: 'list images', rows: '' },
  '/networks': { task: 'list networks', rows: '' },
  '/volumes': { task: 'list volumes', rows: 'Volumes' }
} as const

/** The names of owners are verified after the list has come. */
const sharedList = <T>(of: string, run: (signal: AbortSignal) => Promise<T>): SharedCall<T> =>
  new SharedCall(run, 2 * listLimitMs, `the list of all ${of} of the Docker Engine`)

/** Of the labels of a container, those that say that it is ours; the others may be long, and are let go. */
function claimsOf(fields: Fields): Record<string, string> {
  const labels = fieldsOf(fields.Labels)
  return Object.fromEntries(
    [instanceLabel, imageInstanceLabel].flatMap(key => {
      const value = labels[key]
      return typeof value === 'string' ? [[key, value]] : []
    })
  )
}

/** As its signature has it, and not as it is shown. */
const namedOf = (fields: Fields) => ({ Name: textOf(fields.Name), Labels: labelsOf(fields) })

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

interface Dated {
  readonly id: string
  readonly createdAt: Date
}
const newestFirst = (a: Dated, b: Dated): number =>
  b.createdAt.getTime() - a.createdAt.getTime() || compare(a.id, b.id)
