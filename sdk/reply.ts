import type { Readable } from 'node:stream'

/** A cookie to set. `maxAgeSeconds` below zero deletes it. */
export interface Cookie {
  readonly name: string
  readonly value: string
  readonly path: string
  readonly httpOnly: boolean
  readonly maxAgeSeconds: number
}

export interface ReplyOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly Cookie[]
}

const mark: unique symbol = Symbol.for('busbar.reply')

interface Marked {
  readonly [mark]: true
}
export interface ValueReply<T = unknown> extends Marked {
  readonly kind: 'value'
  readonly status: number
  readonly value: T
  readonly options: ReplyOptions
}
export interface StreamReply extends Marked {
  readonly kind: 'sse'
  readonly frames: AsyncIterable<SseFrame | readonly SseFrame[] | Uint8Array>
  readonly heartbeatMs: number | null
}
export interface DownloadReply extends Marked {
  readonly kind: 'download'
  readonly source: Readable
  readonly type: string
  readonly filename: string
  readonly options: ReplyOptions
}
export interface RedirectReply extends Marked {
  readonly kind: 'redirect'
  readonly url: string
}
export type Reply<T = unknown> = ValueReply<T> | StreamReply | DownloadReply | RedirectReply

/** One Server-Sent Event: `data` is written as it is when a string, as JSON otherwise. */
export interface SseFrame {
  /** What a reader sends back as `Last-Event-ID` when it comes again; one line of text. */
  readonly id?: string
  readonly event?: string
  readonly data: unknown
}

/**
 * A value with a status other than 200, or with headers or cookies. 204 takes `null`. Throws for a status that ends no answer
 * (below 200), or is none.
 */
export function reply<T>(status: number, value: T, options: ReplyOptions = {}): ValueReply<T> {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new RangeError(`reply(${status}): the status of an answer is a number from 200 to 599`)
  return { [mark]: true, kind: 'value', status, value, options }
}

/**
 * A Server-Sent Events stream. Iteration stops when the client goes away (and `request.signal` aborts),
 * and waits while the client does not read. Events that are there together may be given as a list, which is written at once: that costs
 * a fraction, and is held in memory as a whole. Bytes are sent as they are: frames that were written once for many readers, who share
 * them. `heartbeatMs` writes a comment that often (null: never).
 */
export const sse = (
  frames: AsyncIterable<SseFrame | readonly SseFrame[] | Uint8Array>,
  options: { heartbeatMs?: number | null } = {}
): StreamReply => ({ [mark]: true, kind: 'sse', frames, heartbeatMs: options.heartbeatMs ?? null })

/** A file for the browser to save; the source is destroyed when the client goes away. */
export const download = (
  source: Readable,
  file: { type: string; filename: string } & ReplyOptions
): DownloadReply => ({
  [mark]: true,
  kind: 'download',
  source,
  type: file.type,
  filename: file.filename,
  options: file
})

/** 302 to `url`. */
export const redirect = (url: string): RedirectReply => ({ [mark]: true, kind: 'redirect', url })

export function isReply(value: unknown): value is Reply {
  try {
    return typeof value === 'object' && value !== null && mark in value
  } catch {
    // A proxy may throw when it is asked.
    return false
  }
}
