import type { DiskShare, EngineDiskUse } from 'busbar/api/containers'
import type { JsonRow } from './json-rows.js'
import { countOf, type Fields, fieldsOf } from './listed-text.js'

type Kind = 'images' | 'containers' | 'volumes' | 'buildCache'

/**
 * Up to version 1.51 of its API an engine lists everything and leaves it to its client to add that up; from 1.52 on it tells
 * the sums, and lists beside them where it is asked to (`verbose`).
 */
const kinds: Readonly<Record<string, Kind>> = {
  Images: 'images',
  'ImageUsage.Items': 'images',
  Containers: 'containers',
  'ContainerUsage.Items': 'containers',
  Volumes: 'volumes',
  'VolumeUsage.Items': 'volumes',
  BuildCache: 'buildCache',
  'BuildCacheUsage.Items': 'buildCache'
}
const sums: Readonly<Record<string, Kind>> = {
  ImageUsage: 'images',
  ContainerUsage: 'containers',
  VolumeUsage: 'volumes',
  BuildCacheUsage: 'buildCache'
}

interface Sum {
  count: number
  bytes: number
  reclaimableBytes: number
}
const nothing = (): Sum => ({ count: 0, bytes: 0, reclaimableBytes: 0 })
const active = ['running', 'paused', 'restarting']

/** Adds up what the engine says of its disk, row by row. */
export class DiskReport {
  readonly #listed: Readonly<Record<Kind, Sum>> = {
    images: nothing(),
    containers: nothing(),
    volumes: nothing(),
    buildCache: nothing()
  }
  readonly #told: Partial<Record<Kind, Sum>> = {}
  #layersBytes = 0
  /** What of images with containers no other one has. */
  #usedImageBytes = 0
  readonly #sharedBytes = new Map<string, number>()
  readonly #volumeBytes = new Map<string, number>()

  add({ path, value }: JsonRow): void {
    const kind = kinds[path]
    // Where there is nothing to list, some say null.
    if (kind !== undefined) {
      if (typeof value === 'object' && value !== null) this.#addRow(kind, fieldsOf(value))
    } else if (path === 'LayersSize') this.#layersBytes = countOf(value)
    else this.#addSum(path, value)
  }

  result(): EngineDiskUse {
    const listed = { ...this.#listed.images, bytes: this.#layersBytes }
    const images = {
      ...listed,
      reclaimableBytes: Math.max(0, this.#layersBytes - this.#usedImageBytes)
    }
    const { containers, volumes, buildCache } = this.#listed
    const shares = { images, containers, volumes, buildCache, ...this.#told }
    return {
      layersBytes: this.#told.images?.bytes ?? this.#layersBytes,
      images: share(shares.images),
      containers: share(shares.containers),
      volumes: share(shares.volumes),
      buildCache: share(shares.buildCache),
      sharedBytes: this.#sharedBytes,
      volumeBytes: this.#volumeBytes
    }
  }

  #addSum(path: string, value: unknown): void {
    const dot = path.indexOf('.')
    const kind = sums[path.slice(0, dot)]
    if (dot < 0 || kind === undefined) return
    const sum = this.#told[kind] ?? nothing()
    this.#told[kind] = sum
    switch (path.slice(dot + 1)) {
      case 'TotalCount':
        sum.count = countOf(value)
        return
      case 'TotalSize':
        sum.bytes = countOf(value)
        return
      case 'Reclaimable':
        sum.reclaimableBytes = countOf(value)
    }
  }

  #addRow(kind: Kind, row: Fields): void {
    const sum = this.#listed[kind]
    sum.count++
    switch (kind) {
      case 'images':
        this.#addImage(row)
        return
      case 'containers':
        add(sum, countOf(row.SizeRw), !active.includes(String(row.State)))
        return
      case 'volumes': {
        const { Size: size, RefCount: references } = fieldsOf(row.UsageData)
        // -1 for what it has not measured, and for other drivers than its own.
        if (typeof row.Name === 'string' && typeof size === 'number' && size >= 0)
          this.#volumeBytes.set(row.Name, countOf(size))
        add(sum, countOf(size), references === 0)
        return
      }
      case 'buildCache':
        // What is shared lies in an image, and is counted there.
        if (row.Shared !== true) add(sum, countOf(row.Size), row.InUse !== true)
    }
  }

  #addImage({ Id: id, Size: size, SharedSize: shared, Containers: containers }: Fields): void {
    if (typeof id !== 'string' || typeof shared !== 'number' || shared < 0) return
    this.#sharedBytes.set(id, countOf(shared))
    if (containers !== 0) this.#usedImageBytes += Math.max(0, countOf(size) - countOf(shared))
  }
}

function add(sum: Sum, bytes: number, isReclaimable: boolean): void {
  sum.bytes += bytes
  if (isReclaimable) sum.reclaimableBytes += bytes
}

const share = ({ count, bytes, reclaimableBytes }: Sum): DiskShare => ({ count, bytes, reclaimableBytes })
