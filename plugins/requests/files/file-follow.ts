import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Backoff, type Clock, type Log, Turns } from 'busbar/sdk'
import type { AccessLogFile } from '../api.js'
import { draftOf, type TraceDraft } from '../record/trace.js'
import type { PlaceChange } from '../record/trace-store.js'
import type { TraceWriter } from '../record/trace-writer.js'
import { beginningOf, type FilePlace } from './file-place.js'
import { FolderWatch } from './folder-watch.js'
import type { PlaceStore } from './place-store.js'
import { longestLine, readLines } from './read-lines.js'
import {
  fileBehind,
  firstSince,
  headOf,
  holdsPlace,
  type LogFile,
  lookAt,
  rotatedFiles
} from './rotated-files.js'

/** Read at a time; what a reader holds of a file, however large it is. */
const pieceBytes = 512 * 1024
/** Stored by one statement. */
const mostLines = 1_000
/** A line that comes alone waits so long for others. */
const gatherMs = 50

/** What was read of logs, since the plugin was started. */
interface ReadCounts {
  /** Lines that are too long to be one. */
  skipped: number
  /** Lines that are no request. */
  unread: number
}

export interface FollowParts {
  readonly writer: Pick<TraceWriter, 'writeRead'>
  readonly places: PlaceStore
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
  readonly clean: (text: string) => string
  readonly counts: ReadCounts
}

/** Another process reads the log. */
class PlaceLost extends Error {
  constructor() {
    super('another process reads the access log')
  }
}

/**
 * Reads an access log from the place on that is stored, and stores each piece together with the place behind it. A file that was renamed is
 * read to its end before the one that came behind it.
 */
export class FileFollow {
  readonly #piece = Buffer.allocUnsafeSlow(pieceBytes)
  readonly #turns = new Turns()
  readonly #path: string
  /** Where reading goes on, and what is stored of it. */
  #place: FilePlace = beginningOf('', '0')
  #stored = this.#place
  #file: FileHandle | undefined

  constructor(
    private readonly parts: FollowParts,
    private readonly accessLog: AccessLogFile
  ) {
    this.#path = accessLog.path
  }

  /** Until the signal aborts. Rejects when another process reads the log, and then has stored nothing that is not its own. */
  async run(signal: AbortSignal): Promise<void> {
    const { places, clock } = this.parts
    const watch = new FolderWatch(dirname(this.#path), clock)
    try {
      this.#place = this.#stored = await places.placeOf(this.#path)
      while (!signal.aborted) {
        this.#file ??= await this.#find()
        if (this.#file === undefined || (await this.#readOn(this.#file, signal))) {
          await watch.change(signal)
          await sleep(gatherMs, undefined, { signal })
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      watch.close()
      await this.#leave()
    }
  }

  /** Whether there is no more for now. */
  async #readOn(file: FileHandle, signal: AbortSignal): Promise<boolean> {
    // Looked at before: what was written until it was renamed is read below.
    const current = await lookAt(this.#path)
    const isRotated = current !== undefined && current.inode !== this.#place.inode
    if (!(await holdsPlace(file, this.#place))) {
      this.parts.log.info({ path: this.#path }, 'an access log was cut down; it is read from its beginning')
      await this.#leave()
      return false
    }
    await this.#readToEnd(file, isRotated, signal)
    if (!isRotated) return true
    const next = fileBehind(await rotatedFiles(this.#path), this.#place) ?? current
    await this.#leave()
    this.#place = beginningOf(next.inode, String(next.changedNs))
    return false
  }

  async #readToEnd(file: FileHandle, isRotated: boolean, signal: AbortSignal): Promise<void> {
    for (;;) {
      const { size, mtimeNs } = await file.stat({ bigint: true })
      const { place } = this.#place
      const { bytesRead } = await file.read(this.#piece, 0, pieceBytes, place)
      const isLast = isRotated && BigInt(place + bytesRead) >= size
      const read = readLines(this.#piece.subarray(0, bytesRead), {
        isMidLine: this.#place.isMidLine,
        isLast,
        most: mostLines
      })
      if (read.used === 0) return
      const to = {
        ...this.#place,
        place: place + read.used,
        isMidLine: read.isMidLine,
        changedNs: String(mtimeNs),
        ...(await this.#headBehind(file, place + read.used))
      }
      const drafts = await this.#draftsOf(read.lines)
      await this.#store(drafts, { path: this.#path, from: this.#stored, to }, signal)
      this.#place = this.#stored = to
      this.#tellSkipped(read.skipped)
      signal.throwIfAborted()
    }
  }

  /** It changes until it is as long as it gets. */
  async #headBehind(file: FileHandle, place: number): Promise<Partial<FilePlace>> {
    const { headLength } = this.#place
    const head = await headOf(file, place)
    return head.headLength > headLength ? head : {}
  }

  async #draftsOf(lines: readonly string[]): Promise<readonly TraceDraft[]> {
    const drafts: TraceDraft[] = []
    for (const line of lines) {
      const draft = this.#draftOf(line)
      if (draft === undefined) this.parts.counts.unread++
      else drafts.push(draft)
      if (this.#turns.isOver) await this.#turns.pass()
    }
    return drafts
  }

  #draftOf(line: string): TraceDraft | undefined {
    try {
      const request = this.accessLog.parse(line)
      return request === null ? undefined : draftOf(request, this.parts.clean)
    } catch {
      // It never throws, unless its plugin has a fault; a line that nobody can read is none.
      return undefined
    }
  }

  async #store(drafts: readonly TraceDraft[], change: PlaceChange, signal: AbortSignal): Promise<void> {
    const { writer, places, clock, log } = this.parts
    const backoff = new Backoff(clock, { firstMs: 250, longestMs: 5_000 })
    for (;;)
      try {
        if (await writer.writeRead(drafts, change)) return
        const now = await places.placeOf(this.#path)
        // It had been stored, and the answer was lost.
        if (now.inode === change.to.inode && now.place === change.to.place) return
        throw new PlaceLost()
      } catch (error) {
        if (error instanceof PlaceLost) throw error
        log[backoff.isFresh ? 'warn' : 'debug'](
          { err: error, path: this.#path },
          'requests of an access log could not be stored; it is tried again, and nothing more is read meanwhile'
        )
        await backoff.pause(signal)
        signal.throwIfAborted()
      }
  }

  /** The file in which the place is, or the one that came behind that. */
  async #find(): Promise<FileHandle | undefined> {
    const current = await lookAt(this.#path)
    if (this.#place.inode === '') {
      if (current === undefined) return undefined
      this.#place = beginningOf(current.inode, String(current.changedNs))
      return await this.#open(current)
    }
    const rotated = await rotatedFiles(this.#path)
    const files = current === undefined ? rotated : [...rotated, current]
    const { inode } = this.#place
    const [named, others] = [
      files.filter(file => file.inode === inode),
      // A copy, as made before a file is cut down.
      this.#place.place === 0 ? [] : files.filter(file => file.inode !== inode)
    ]
    for (const one of [...named, ...others]) {
      const file = await this.#open(one)
      if (file === undefined) continue
      if (await holdsPlace(file, this.#place)) {
        this.#place = { ...this.#place, inode: one.inode }
        return file
      }
      await file.close()
    }
    return await this.#findBehind(rotated, current, named.length > 0)
  }

  async #findBehind(
    rotated: readonly LogFile[],
    current: LogFile | undefined,
    isThere: boolean
  ): Promise<FileHandle | undefined> {
    const next = firstSince(rotated, this.#place.changedNs) ?? current
    if (next === undefined) return undefined
    if (!isThere)
      this.parts.log.warn(
        { path: this.#path, next: next.path },
        'a rotated access log was gone before it was read to its end: requests of it may be missing; keep rotated ones longer, and uncompressed'
      )
    this.#place = beginningOf(next.inode, String(next.changedNs))
    return await this.#open(next)
  }

  /** Undefined where another file has that path by now, or none. */
  async #open({ path, inode }: LogFile): Promise<FileHandle | undefined> {
    // A pipe that has taken its place would keep whoever opens it waiting.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
    if (file === undefined) return undefined
    const { ino } = await file.stat({ bigint: true })
    if (String(ino) === inode) return file
    await file.close()
    return undefined
  }

  async #leave(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }

  #tellSkipped(skipped: number): void {
    if (skipped === 0) return
    this.parts.counts.skipped += skipped
    this.parts.log.warn(
      { path: this.#path, skipped, longestLine },
      'lines of an access log were passed over, as they are too long'
    )
  }
}
