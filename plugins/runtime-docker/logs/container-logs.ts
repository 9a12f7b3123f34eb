import type { LogBatch, LogOptions } from 'busbar/api/containers'
import { isProblem } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { problems } from '../problems.js'
import type { FollowRenewal } from './follow-renewal.js'
import { FollowTrust, isLittle } from './follow-trust.js'
import type { LogMessage } from './log-message.js'
import { logMessages } from './log-messages.js'
import { LogPace } from './log-pace.js'
import { type LogPlace, placeBehind, placeText, readPlace } from './log-place.js'
import { logSplitter } from './log-splitter.js'
import { firstWindow, nextWindow, PlaceSearch, windowAfter } from './place-search.js'

/** Meanwhile the engine may have begun two files of the log, see `FollowTrust`. */
const longestPauseMs = 250

const task = 'read the output of a container'

export interface ReadContainer {
  readonly containerId: string
  readonly hasTerminal: boolean
}

/** See `ContainerRuntime.logs`. `renewal`: of an engine before Docker 23, whose follows are to begin anew now and then. */
export async function* containerLogs(
  engine: EngineClient,
  container: ReadContainer,
  options: LogOptions,
  renewal?: FollowRenewal
): AsyncGenerator<LogBatch> {
  const { signal, follow = false } = options
  if (signal.aborted) return
  const reader = new LogReader(engine, container, options, renewal)
  try {
    yield* follow ? reader.follow() : reader.rest()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Messages that were not read before. */
interface NewMessages {
  readonly messages: readonly LogMessage[]
  /** What came before the first of them is gone. */
  readonly isGap: boolean
}

/** Reads the log of one container on, from the place up to which it has read. */
class LogReader {
  #place: LogPlace | undefined
  #window: number | 'all' = firstWindow
  readonly #pace = new LogPace()
  /** What is followed now is to begin anew. */
  #isRenewed = false

  constructor(
    private readonly engine: EngineClient,
    private readonly container: ReadContainer,
    private readonly options: LogOptions,
    private readonly renewal?: FollowRenewal
  ) {
    this.#place = options.after === undefined ? undefined : readPlace(options.after)
  }

  /** All there is now; whether it was little. */
  async *rest(): AsyncGenerator<LogBatch, boolean> {
    let count = 0
    let bytes = 0
    for await (const { messages, isGap } of this.#behindPlace(false)) {
      count += messages.length
      for (const message of messages) bytes += message.bytes
      yield this.#batch(messages, isGap)
    }
    this.#window = windowAfter(count)
    return isLittle(count, bytes)
  }

  /** The same, and what is written from then on, until the container ends. */
  async *follow(): AsyncGenerator<LogBatch> {
    for (;;) {
      const hasEnded = yield* this.#live()
      try {
        while (!(yield* this.rest()) && !hasEnded);
      } catch (error) {
        // Who has ended may be gone by now.
        if (!(hasEnded && isProblem(error) && error.code === 'E_CONTAINER_MISSING')) throw error
      }
      if (hasEnded || this.options.signal.aborted) return
    }
  }

  /** What is written, as long as it can be believed; whether the container has ended. */
  async *#live(): AsyncGenerator<LogBatch, boolean> {
    const trust = new FollowTrust(Date.now, this.renewal !== undefined)
    this.#isRenewed = false
    for await (const { messages, isGap } of this.#behindPlace(true)) {
      const believed = messages.slice(0, trust.believed(messages))
      if (believed.length > 0) {
        const givenAt = performance.now()
        yield this.#batch(believed, isGap)
        if (performance.now() - givenAt > longestPauseMs || trust.isTooMuch) return false
      }
      if (believed.length < messages.length) return false
    }
    return !this.#isRenewed
  }

  /** Of the last messages only so many are asked for as are needed to find the place: the engine reads all that it is asked for. */
  async *#behindPlace(follow: boolean): AsyncGenerator<NewMessages> {
    const place = this.#place
    if (place === undefined) {
      for await (const messages of this.#messages(follow, this.options.tail ?? 'all'))
        yield { messages, isGap: false }
      return
    }
    let before: { window: number; earliestMs: number; time: string } | undefined
    for (;;) {
      const window = this.#window
      const search = new PlaceSearch(place, window === 'all')
      let earliest: LogMessage | undefined
      let isTooLate = false
      for await (const messages of this.#messages(follow, window)) {
        earliest ??= messages[0]
        if (search.isFound) {
          yield { messages, isGap: false }
          continue
        }
        const findings = messages.map(message => search.look(message))
        isTooLate = findings.includes('too-late')
        if (isTooLate) break
        const begin = findings.findIndex(finding => finding !== 'known')
        if (begin >= 0) yield { messages: messages.slice(begin), isGap: findings[begin] === 'first' }
      }
      if (this.options.signal.aborted) return
      if (!isTooLate && (follow || search.isFound || window === 'all' || earliest === undefined)) return
      if (window === 'all' || earliest === undefined) this.#window = 'all'
      else {
        const asked = { window, earliestMs: Date.parse(earliest.time), time: earliest.time }
        const placeMs = Date.parse(place[place.last]?.time ?? earliest.time)
        // No more are there than were asked for before.
        const isAll = asked.time === before?.time
        const known = { before, placeMs, nowMs: Date.now(), aMs: this.#pace.aMs }
        this.#window = isAll ? 'all' : nextWindow(asked, known)
        before = asked
      }
    }
  }

  async *#messages(follow: boolean, tail: number | 'all'): AsyncGenerator<LogMessage[]> {
    const { containerId, hasTerminal } = this.container
    const { since, signal } = this.options
    const query = new URLSearchParams({
      stdout: '1',
      stderr: '1',
      timestamps: '1',
      follow: follow ? '1' : '0',
      tail: String(tail),
      ...(since === undefined ? {} : { since: (since.getTime() / 1000).toFixed(3) })
    })
    const splitter = logSplitter(hasTerminal)
    const output = await this.engine.open(
      task,
      `/containers/${encodeURIComponent(containerId)}/logs?${query.toString()}`,
      (read, start, end) => {
        splitter.take(read, start, end)
      },
      {
        signal,
        explain: ({ statusCode }) =>
          statusCode === 404 ? problems.containerMissing({ container: containerId }) : undefined
      }
    )
    const unwatch = follow ? this.renewal?.watch(output) : undefined
    try {
      yield* this.engine.reading(task, logMessages(output, splitter))
    } catch (error) {
      if (this.renewal?.hasEnded(output) !== true) throw error
    } finally {
      this.#isRenewed = this.renewal?.hasEnded(output) === true
      unwatch?.()
      output.destroy()
    }
  }

  #batch(lines: readonly LogMessage[], isGap: boolean): LogBatch {
    const place = placeBehind(this.#place, lines)
    if (place === undefined) throw new Error('a batch without a message')
    this.#place = place
    this.#pace.note(lines)
    return isGap ? { lines, place: placeText(place), isGap } : { lines, place: placeText(place) }
  }
}
