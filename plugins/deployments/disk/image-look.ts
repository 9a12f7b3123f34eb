import type { EngineDiskReader, HeldCache, PreparedImages } from 'busbar/api/builds'
import type { ImageService, ImageUse } from 'busbar/api/images'
import { bounded, type Log } from 'busbar/sdk'
import {
  type DiskRoom,
  type DiskUse,
  givesNow,
  isDeciding,
  type KnownStores,
  noStores,
  type Stored
} from './disk-use-decision.js'
import { keepKey, type OwnedImage, ownedImages } from './image-holdings.js'
import type { ImageRecords } from './image-records.js'
import type { ProjectOwners } from './project-owners.js'

export interface ImageLookParts {
  readonly imageService: Pick<ImageService, 'imageUse'>
  readonly prepared: Pick<PreparedImages, 'fetched' | 'release'>
  readonly imageRecords: Pick<ImageRecords, 'ownersOf' | 'of'>
  readonly engineDisk: Pick<EngineDiskReader, 'caches'>
  readonly owners: Pick<ProjectOwners, 'renew' | 'of'>
  readonly log: Log
}

/** What layers are made of is asked for in this time; the list of images takes the engine what it takes. */
const layersMs = 5000
const imagesWithinMs = 10_000
const recordsWithinMs = 2000
const cachesWithinMs = 5000

/** What images and build engines take of a disk that is nearly short, and which images can go. */
export class ImageLook {
  readonly #parts: ImageLookParts
  #images: readonly ImageUse[] = []
  #fetched: Awaited<ReturnType<PreparedImages['fetched']>> = []
  #caches: readonly HeldCache[] = []
  #applicationOwners: ReadonlyMap<string, string> = new Map()
  /** Which were removed, or could not be, since the disk was last seen with room. */
  readonly #tried = new Set<string>()
  /** What could not be read the last time. */
  readonly #unknown = new Set<string>()

  constructor(parts: ImageLookParts) {
    this.#parts = parts
  }

  /** By what was known before, where the engine or the database does not say: it may have no room, too. */
  async read(uses: readonly DiskUse[], room: DiskRoom, signal: AbortSignal): Promise<KnownStores> {
    const { engineDisk, imageRecords, imageService, owners, prepared } = this.#parts
    if (!isDeciding(uses, room)) return noStores
    await Promise.all([
      this.#try(signal, 'what images take', imagesWithinMs, async () => {
        this.#images = await imageService.imageUse({ allMs: layersMs })
      }),
      this.#try(signal, 'what build engines hold', cachesWithinMs, async () => {
        this.#caches = await engineDisk.caches()
      })
    ])
    await this.#try(signal, 'whose images are', recordsWithinMs, async () => {
      this.#fetched = await prepared.fetched()
      const ids = new Set(this.#fetched.map(({ applicationId }) => applicationId))
      this.#applicationOwners = await imageRecords.ownersOf([...ids])
      await owners.renew([
        ...[...uses, ...this.#images].map(({ owner }) => owner?.projectId),
        ...this.#caches.map(({ projectId }) => projectId)
      ])
    })
    const stored: Stored = {
      stored: this.#owned(uses),
      caches: this.#caches.map(({ projectId, bytes }) => ({ ownerId: owners.of(projectId), bytes }))
    }
    const ownerId = givesNow(uses, room, stored)
    let records: KnownStores['records'] = []
    if (ownerId !== undefined)
      await this.#try(signal, 'what deployments need of images', recordsWithinMs, async () => {
        records = (await imageRecords.of(ownerId)).filter(
          ({ applicationId, reference, isActive }) =>
            isActive || !this.#tried.has(keepKey(applicationId, reference))
        )
      })
    return { ...stored, records }
  }

  /** One that cannot go is not tried again, so that it does not keep what comes after it. */
  async release(applicationId: string, reference: string): Promise<void> {
    this.#tried.add(keepKey(applicationId, reference))
    await this.#parts.prepared.release(applicationId, reference)
  }

  noteRoom(): void {
    this.#tried.clear()
  }

  #owned(uses: readonly DiskUse[]): readonly OwnedImage[] {
    const ofContainers = new Map(uses.map(({ id, ownerId }) => [id, ownerId]))
    return ownedImages(this.#images, this.#fetched, {
      ofProject: id => this.#parts.owners.of(id),
      ofApplication: id => this.#applicationOwners.get(id) ?? id,
      ofContainer: id => ofContainers.get(id)
    })
  }

  async #try(signal: AbortSignal, what: string, ms: number, read: () => Promise<void>): Promise<void> {
    const { log } = this.#parts
    try {
      await bounded(read, { ms, signal, what })
      this.#unknown.delete(what)
    } catch (error) {
      signal.throwIfAborted()
      if (!this.#unknown.has(what))
        log.warn({ err: error }, `${what} on the disk could not be read; going by what was known`)
      this.#unknown.add(what)
    }
  }
}
