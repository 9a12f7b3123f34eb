import { once } from 'node:events'
import { type OutgoingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { type DownloadReply, type Log, Problem, type SseFrame, type StreamReply, Turns } from 'busbar/sdk'
import { longestTimerMs } from '../clock/clock.js'
import { faultOf } from '../frames/fault.js'
import { wantsHeadOnly } from './head-only.js'
import type { RequestContext } from './request-context.js'

const accessLost = new Problem(404, 'E_NOT_FOUND', 'not found')

/**
 * Server-Sent Events: one frame at a time, waiting while the client does not read. Ends with the source,
 * or with the request: whichever is first, and however fast the source is.
 */
export async function sendEvents(
  iterator: AsyncIterator<SseFrame | readonly SseFrame[] | Uint8Array>,
  { heartbeatMs }: StreamReply,
  context: RequestContext,
  log: Log
): Promise<void> {
  const { response, signal } = context
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    connection: 'keep-alive',
    'x-accel-buffering': 'no'
  })
  response.flushHeaders()
  const beat = (): void => {
    if (!response.writableNeedDrain && !response.destroyed) response.write(': ping\n\n')
  }
  if (wantsHeadOnly(context.raw)) {
    endSource(iterator)
    response.end()
    return
  }
  const beating = heartbeatMs === null ? undefined : setInterval(beat, heartbeatMs)
  if (heartbeatMs !== null) beat()
  const unwatch = context.watchAccess(() => {
    context.abort(accessLost)
  })
  try {
    await orAborted(signal, () => writeFrames(iterator, context))
  } catch (error) {
    if (!signal.aborted)
      log.error(
        { err: faultOf(error), requestId: context.requestId, plugin: context.record.plugin },
        'an event stream ended with an error'
      )
  } finally {
    clearInterval(beating)
    unwatch()
    response.end()
    endSource(iterator)
  }
}

/** Not awaited: a source that hangs must not keep the response open. */
function endSource(iterator: AsyncIterator<unknown>): void {
  void (async () => iterator.return?.())().catch(() => {})
}

/** Whether the request has ended is asked before every step: a promise that lost a race is never looked at again. */
async function writeFrames(
  iterator: AsyncIterator<SseFrame | readonly SseFrame[] | Uint8Array>,
  context: RequestContext
): Promise<void> {
  const { response, signal } = context
  const turns = new Turns(ownerOf(context))
  while (!signal.aborted) {
    const text = await nextText(iterator)
    if (text === undefined || signal.aborted) return
    if (!response.write(text)) await once(response, 'drain', { signal })
    if (turns.isOver) await turns.pass()
  }
}

/** Undefined at the end. The text alone is held while a client takes its time. */
async function nextText(
  iterator: AsyncIterator<SseFrame | readonly SseFrame[] | Uint8Array>
): Promise<string | Uint8Array | undefined> {
  const next = await iterator.next()
  if (next.done === true) return undefined
  return next.value instanceof Uint8Array ? next.value : framesText(next.value)
}

/**
 * Settles like `work`, or resolves at the abort: a source that waits for the next line would never notice
 * that the client has gone. One race for the whole stream; one for each frame would keep all frames alive.
 */
async function orAborted(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const stop = (): void => {
      resolve()
    }
    signal.addEventListener('abort', stop)
    work()
      .then(resolve, reject)
      .finally(() => {
        signal.removeEventListener('abort', stop)
      })
  })
}

/** Throws at what no timer takes. */
export function checkHeartbeat({ heartbeatMs }: StreamReply): void {
  if (heartbeatMs === null || (heartbeatMs >= 1 && heartbeatMs <= longestTimerMs)) return
  throw new RangeError(`heartbeatMs is ${String(heartbeatMs)}: it takes 1 to ${longestTimerMs}, or null`)
}

function framesText(frames: SseFrame | readonly SseFrame[]): string {
  if ('data' in frames) return frameText(frames)
  let text = ''
  for (const frame of frames) text += frameText(frame)
  return text
}

const lineBreak = /[\r\n]/

export function frameText({ id, event, data }: SseFrame): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  const head = `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}`
  if (!lineBreak.test(text)) return `${head}data: ${text}\n\n`
  const lines = text.split(/\r\n|\r|\n/)
  return `${head}${lines.map(line => `data: ${line}\n`).join('')}\n`
}

/** The head of a download. Throws at what cannot be written, while that can still be answered. */
export function downloadHead({ type, filename, options }: DownloadReply): OutgoingHttpHeaders {
  if (typeof filename !== 'string' || typeof type !== 'string')
    throw new TypeError('a download was answered without a type or a filename')
  const name = filename.replace(/[^\w.-]/g, '_')
  const head = {
    ...options.headers,
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`
  }
  for (const [header, value] of Object.entries(head)) {
    validateHeaderName(header)
    validateHeaderValue(header, value)
  }
  return head
}

/** Streams of one user share turns, and so do the anonymous streams of one address. */
const ownerOf = ({ caller, ip }: RequestContext): string =>
  caller.kind === 'anonymous' ? ip : caller.user.id

/** The same values; others have their turn between them. */
async function* inTurns<T>(values: AsyncIterable<T>, owner: string): AsyncGenerator<T> {
  const turns = new Turns(owner)
  for await (const value of values) {
    if (turns.isOver) await turns.pass()
    yield value
  }
}

export async function sendDownload(
  { source }: DownloadReply,
  head: OutgoingHttpHeaders,
  context: RequestContext,
  log: Log
): Promise<void> {
  const { response } = context
  // A source of another length than was told would be taken for a part of the next answer, or the other way round.
  response.strictContentLength = true
  response.writeHead(200, head)
  await pipeline(source, values => inTurns(values, ownerOf(context)), response).catch((error: unknown) => {
    if (!context.signal.aborted)
      log.error(
        { err: error, requestId: context.requestId, plugin: context.record.plugin },
        'a download was cut short'
      )
  })
}
