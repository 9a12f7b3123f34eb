import { Backoff, type Contributions, pause } from 'busbar/sdk'
import type { AccessLogFile } from '../api.js'
import { FileFollow, type FollowParts } from './file-follow.js'

/** How soon a log is followed whose plugin has come. */
const lookMs = 2_000

interface Followed {
  readonly accessLog: AccessLogFile
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/** Follows the access logs that plugins contribute, as they come and go; for one process of an installation. */
export class AccessLogs {
  constructor(private readonly parts: FollowParts & { readonly files: Contributions<AccessLogFile> }) {}

  /** Until the signal aborts, and all that is being stored is. */
  async run(signal: AbortSignal): Promise<void> {
    const followed = new Map<string, Followed>()
    while (!signal.aborted) {
      const wanted = new Map(this.parts.files.entries().map(({ value }) => [value.path, value]))
      for (const [path, { accessLog, stop, ended }] of followed) {
        if (wanted.get(path) === accessLog) continue
        // Another version of its plugin reads on where this one has stopped.
        stop.abort()
        await ended
        followed.delete(path)
      }
      for (const [path, accessLog] of wanted)
        if (!followed.has(path)) followed.set(path, this.#follow(accessLog, signal))
      await pause(this.parts.clock, lookMs, signal)
    }
    await Promise.all([...followed.values()].map(async ({ ended }) => await ended))
  }

  #follow(accessLog: AccessLogFile, signal: AbortSignal): Followed {
    const stop = new AbortController()
    return { accessLog, stop, ended: this.#keepFollowing(accessLog, AbortSignal.any([signal, stop.signal])) }
  }

  /** Never rejects: what fails begins again, from the place that is stored. */
  async #keepFollowing(accessLog: AccessLogFile, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    const backoff = new Backoff(clock, { firstMs: 1_000, longestMs: 30_000 })
    while (!signal.aborted) {
      try {
        await new FileFollow(this.parts, accessLog).run(signal)
      } catch (error) {
        log.error({ err: error, path: accessLog.path }, 'an access log could not be read; trying again')
        await backoff.pause(signal)
      }
    }
  }
}
