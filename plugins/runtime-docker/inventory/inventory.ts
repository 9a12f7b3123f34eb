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
import { ContainerOrigins } from './container-origins.js'
import type { DiskMeasure } from './disk-measure.js'
import { type RowsQuestion, readRows } from './engine-rows.js'
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

  constructor(private readonly parts: InventoryParts) {
    this.#origins = new ContainerOrigins(parts)
  }

  async containers(signal: AbortSignal): Promise<readonly ListedContainer[]> {
    const rows: Array<{ readonly row: Unowned<ListedContainer>; readonly labels: Record<string, string> }> =
      []
    const question = { task: 'list containers', path: '/containers/json', query: { all: true } }
    await this.#list(question, signal, '', fields => {
      rows.push({ row: containerRow(fields), labels: claimsOf(fields) })
    })
    const origins = await this.#origins.of(rows.map(({ row, labels }) => ({ id: row.id, labels })))
    return rows
      .map(({ row }, index) => ({ ...row, ...(origins[index] ?? listedFor(undefined)) }))
      .sort(newestFirst)
  }

  async images(signal: AbortSignal): Promise<readonly ListedImage[]> {
    const images: ListedImage[] = []
    await this.#list({ task: 'list images', path: '/images/json' }, signal, '', fields => {
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

  async networks(signal: AbortSignal): Promise<readonly ListedNetwork[]> {
    const networks: ListedNetwork[] = []
    await this.#list({ task: 'list networks', path: '/networks' }, signal, '', fields => {
      networks.push({ ...networkRow(fields), ...listedFor(this.parts.identity.network(namedOf(fields))) })
    })
    return networks.sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id))
  }

  async volumes(signal: AbortSignal): Promise<readonly ListedVolume[]> {
    const volumes: ListedVolume[] = []
    await this.#list({ task: 'list volumes', path: '/volumes' }, signal, 'Volumes', fields => {
      volumes.push({ ...volumeRow(fields), ...listedFor(this.parts.identity.volume(namedOf(fields))) })
    })
    return volumes.sort((a, b) => compare(a.name, b.name))
  }

  async diskUse(signal: AbortSignal): Promise<EngineDiskUse> {
    signal.throwIfAborted()
    return await this.parts.measure.read()
  }

  async #list(
    question: Pick<RowsQuestion, 'task' | 'path' | 'query'>,
    signal: AbortSignal,
    wanted: string,
    onRow: (fields: Fields) => void
  ): Promise<void> {
    await readRows(this.parts, { ...question, limitMs: listLimitMs, signal }, ({ path, value }) => {
      // For an empty list an engine may say null.
      if (path === wanted && value !== null) onRow(fieldsOf(value))
    })
  }
}

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
