import type { BuildLogLine } from 'busbar/api/builds'
import { type Bus, type Clock, cutMark, cutText, type Log, type SecretScope } from 'busbar/sdk'
import type { DeploymentLogStore, LogChunk } from './deployment-log-store.js'

/** A build log keeps this much of its beginning, and as much of its end. */
const headBytes = 512 * 1024
const tailBytes = 496 * 1024
const flushEveryMs = 250
const flushAtLines = 100
/** Lines that arrive faster than the database takes them are dropped past this many, the oldest first. */
const maxWaiting = 4000
/** The same for characters: of more than this the record keeps nothing. */
const maxWaitingCharacters = 1024 * 1024
const longestLine = 8 * 1024
/** A live reader cannot follow more than this at once; the record has the rest. */
const maxPublished = 1000

export interface LogEntry {
  readonly ts: string
  readonly level: BuildLogLine['level']
  readonly stream?: 'stdout' | 'stderr'
  readonly msg: string
}

/** A line before it is written: most of a flood never are, so it costs as little as can be. */
type WaitingLine = Omit<LogEntry, 'ts'> & { readonly at: Date }

interface BuildLogParts {
  readonly store: DeploymentLogStore
  readonly bus: Bus
  /** The secrets to hide from its readers. */
  readonly secrets: Pick<SecretScope, 'clean'>
  readonly clock: Clock
  readonly log: Log
}

export const buildLogChannel = (deploymentId: string): string => `build-logs:${deploymentId}`

/** Writes the log of one deployment: in batches, without secrets, and never more than 1 MiB of it. */
export interface BuildLog {
  line(line: BuildLogLine): void
  /** The live channel has ended: from now on lines go to the record alone. */
  endChannel(): void
  /** Resolves when everything so far is in the record. */
  flush(): Promise<void>
  /** Flushes for the last time. */
  close(): Promise<void>
}

export function openBuildLog(
  deploymentId: string,
  { store, bus, secrets, clock, log }: BuildLogParts
): BuildLog {
  const channel = buildLogChannel(deploymentId)
  let waiting: WaitingLine[] = []
  let waitingCharacters = 0
  let lostLines = 0
  let lostBytes = 0
  let isLive = true
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> = Promise.resolve()

  let isLoaded = false
  let nextSeq = 0
  let isHeadOpen = true
  let headSize = 0
  let tail: LogChunk[] = []

  /** What an earlier process has written counts too. */
  async function load(): Promise<void> {
    const chunks = await store.chunks(deploymentId)
    nextSeq = (chunks.at(-1)?.seq ?? -1) + 1
    tail = chunks.filter(chunk => chunk.is_tail)
    isHeadOpen = tail.length === 0
    headSize = chunks.reduce((sum, chunk) => (chunk.is_tail ? sum : sum + chunk.bytes), 0)
    isLoaded = true
  }

  async function write(): Promise<void> {
    if (waiting.length === 0) return
    if (!isLoaded) await load()
    const lines = waiting
    let cutLines = lostLines
    let cutBytes = lostBytes
    waiting = []
    waitingCharacters = 0
    lostLines = lostBytes = 0

    const entries: LogEntry[] = lines.map(({ at, msg, ...line }) => ({
      ts: at.toISOString(),
      ...line,
      msg: shortened(secrets.clean(msg))
    }))
    const texts = entries.map(entry => `${JSON.stringify(entry)}\n`)
    const sizes = texts.map(text => Buffer.byteLength(text))
    let bytes = sizes.reduce((sum, size) => sum + size, 0)
    if (cutLines > 0 || headSize + bytes > headBytes) isHeadOpen = false
    let from = 0
    if (!isHeadOpen) {
      for (; bytes > tailBytes && from < texts.length - 1; from += 1) {
        bytes -= sizes[from] ?? 0
        cutLines += 1
        cutBytes += sizes[from] ?? 0
      }
    }
    const chunk = {
      seq: nextSeq,
      is_tail: !isHeadOpen,
      lines: texts.length - from,
      bytes,
      text: texts.slice(from).join('')
    }
    let dropBelow: number | undefined
    if (isHeadOpen) {
      headSize += bytes
    } else {
      let size = tail.reduce((sum, one) => sum + one.bytes, bytes)
      while (size > tailBytes && tail.length > 0) {
        const dropped = tail.shift()
        if (dropped === undefined) break
        size -= dropped.bytes
        cutLines += dropped.lines
        cutBytes += dropped.bytes
        dropBelow = dropped.seq + 1
      }
      tail.push(chunk)
    }
    nextSeq += 1
    // The record first: who subscribes and then reads the record misses nothing.
    await store.append(deploymentId, chunk, dropBelow, { lines: cutLines, bytes: cutBytes })
    if (isLive && bus.hasSubscribers(channel))
      for (const entry of entries.slice(-maxPublished)) bus.publish(channel, 'log', entry)
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    flushing = flushing.then(write).catch((error: unknown) => {
      isLoaded = false
      log.error({ err: error, deploymentId }, 'a piece of a build log could not be stored')
    })
    return flushing
  }

  function add({ level, stream, msg }: BuildLogLine, at: Date): void {
    // Cut before it waits: a line of many megabytes must not sit in memory.
    const text = cutText(msg, longestLine * 2)
    waiting.push(stream === undefined ? { at, level, msg: text } : { at, level, stream, msg: text })
    waitingCharacters += text.length
    if (waiting.length > maxWaiting || waitingCharacters > maxWaitingCharacters) dropOldest()
  }

  /** Half of what may wait goes at once, so that a dropped line costs no more than a look. */
  function dropOldest(): void {
    let count = 0
    let characters = 0
    while (
      waiting.length - count > maxWaiting / 2 ||
      waitingCharacters - characters > maxWaitingCharacters / 2
    ) {
      characters += waiting[count]?.msg.length ?? 0
      count += 1
    }
    waiting.splice(0, count)
    waitingCharacters -= characters
    lostLines += count
    lostBytes += characters
  }

  return {
    line(line) {
      if (isClosed) return
      const at = clock.now()
      if (!line.msg.includes('\n')) add(line, at)
      else for (const msg of line.msg.split(/\r?\n/)) add({ ...line, msg }, at)
      if (waiting.length === flushAtLines) void flush()
      else timer ??= setTimeout(() => void flush(), flushEveryMs)
    },
    endChannel() {
      isLive = false
    },
    flush,
    async close() {
      isClosed = true
      await flush()
    }
  }
}

function shortened(text: string): string {
  if (text.length <= longestLine) return text
  const isCut = text.endsWith(cutMark)
  const more = text.length - longestLine - (isCut ? cutMark.length : 0)
  return `${text.slice(0, longestLine)} … (${isCut ? 'more than ' : ''}${more} more characters)`
}

/** Whole lines; a line that says what was left out has no place among them. */
interface BuildLogPiece {
  readonly seq?: number
  readonly text: string
}

/** A log as it is kept, in pieces of whole lines, with a line where something was left out: read so many at a time. */
export async function* buildLogPieces(
  store: DeploymentLogStore,
  deploymentId: string,
  { fromSeq = 0, pageLength }: { readonly fromSeq?: number; readonly pageLength?: number } = {}
): AsyncGenerator<BuildLogPiece> {
  let isTail = false
  for (let from = fromSeq; ; ) {
    const page = await store.read(deploymentId, from, pageLength)
    for (const chunk of page) {
      if (chunk.is_tail && !isTail) {
        isTail = true
        const cut = await store.cut(deploymentId)
        if (cut.lines > 0) yield { text: cutNote(cut, chunk.text) }
      }
      yield chunk
      from = chunk.seq + 1
    }
    if (pageLength === undefined || page.length < pageLength) return
  }
}

/** The whole log; null when there is none. */
export async function readBuildLog(store: DeploymentLogStore, deploymentId: string): Promise<string | null> {
  const pieces: string[] = []
  for await (const piece of buildLogPieces(store, deploymentId)) pieces.push(piece.text)
  return pieces.length === 0 ? null : pieces.join('')
}

function cutNote(cut: { lines: number; bytes: number }, next: string): string {
  const entry: LogEntry = {
    ts: timeOf(next),
    level: 'warning',
    msg: `${cut.lines} lines (${(cut.bytes / 1024 / 1024).toFixed(1)} MiB) were left out here: a build log keeps its beginning and its end, 1 MiB in all`
  }
  return `${JSON.stringify(entry)}\n`
}

/** The note stands where the cut is, so its time is that of the line after it. */
const timeOf = (lines: string): string => /^\{"ts":"([^"]+)"/.exec(lines)?.[1] ?? new Date(0).toISOString()
