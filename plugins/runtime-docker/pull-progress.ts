import { currentBytes } from './engine-progress.js'

/** One event of a pull: of one layer when it has an id. */
interface PullEvent {
  readonly id?: unknown
  readonly status?: unknown
  readonly progressDetail?: unknown
}

const stepBytes = 32 * 1024 * 1024
const finished: ReadonlySet<string> = new Set(['Pull complete', 'Already exists'])

/**
 * Turns thousands of progress events into a few lines: the sentences about the whole image, a line when a
 * layer is there, and one for every 32 MiB that came in between.
 */
export class PullProgress {
  readonly #layers = new Map<string, { bytes: number; isFinished: boolean }>()
  #downloaded = 0
  #announced = 0
  #finishedCount = 0

  constructor(private readonly onLine: (line: string) => void) {}

  write({ id, status, progressDetail }: PullEvent): void {
    if (typeof status !== 'string') return
    const isNextImage = status.startsWith('Pulling from ')
    if (isNextImage) this.#startOver()
    // The beginning of a pull has an id too: the tag.
    if (typeof id !== 'string' || isNextImage) {
      this.onLine(status)
      return
    }
    const layer = this.#layers.get(id) ?? { bytes: 0, isFinished: false }
    this.#layers.set(id, layer)
    if (status === 'Downloading') {
      const more = Math.max(0, currentBytes(progressDetail) - layer.bytes)
      layer.bytes += more
      this.#downloaded += more
    }
    if (finished.has(status) && !layer.isFinished) {
      layer.isFinished = true
      this.#finishedCount++
      this.#tell()
    } else if (this.#downloaded >= this.#announced + stepBytes) {
      this.#tell()
    }
  }

  // A build with several FROM pulls several images.
  #startOver(): void {
    this.#layers.clear()
    this.#downloaded = 0
    this.#announced = 0
    this.#finishedCount = 0
  }

  #tell(): void {
    const bytes = this.#downloaded
    this.#announced = Math.floor(bytes / stepBytes) * stepBytes
    const size = bytes === 0 ? '' : `, ${Math.round(bytes / 1e6)} MB downloaded`
    this.onLine(`${this.#finishedCount} of ${this.#layers.size} layers ready${size}`)
  }
}
