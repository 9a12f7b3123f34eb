import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import { Problem, type DownloadReply, type Log, type SseFrame, type StreamReply } from 'busbar/sdk'
import type { RequestContext } from './request-context.js'

const accessLost = new Problem(404, 'E_NOT_FOUND', 'not found')

/** Server-Sent Events: one frame at a time, waiting while the client does not read. */
export async function sendEvents ({ frames, heartbeatMs }: StreamReply, context: RequestContext, log: Log): Promise<void> {
  const { response, signal } = context
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'keep-alive', 'x-accel-buffering': 'no' })
  response.flushHeaders()
  const beat = heartbeatMs === null ? undefined : setInterval(() => { response.write(': ping\n\n') }, heartbeatMs)
  if (heartbeatMs !== null) response.write(': ping\n\n')
  const iterator = frames[Symbol.asyncIterator]()
  const unwatch = context.watchAccess(() => { context.abort(accessLost) })
  // A source that waits for the next line would never notice that the client has gone.
  const stopped = new Promise<IteratorReturnResult<undefined>>(resolve => {
    const stop = (): void => { resolve({ done: true, value: undefined }) }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), stopped])
      if (next.done === true) break
      if (!response.write(frameText(next.value))) await Promise.race([once(response, 'drain'), stopped])
    }
  } catch (error) {
    if (!signal.aborted) log.error({ err: error, requestId: context.requestId }, 'an event stream ended with an error')
  } finally {
    clearInterval(beat)
    unwatch()
    // Not awaited: a source that hangs must not keep the response open.
    void iterator.return?.()?.catch(() => {})
    response.end()
  }
}

export function frameText ({ event, data }: SseFrame): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  const lines = text.split(/\r\n|\r|\n/).map(line => `data: ${line}\n`).join('')
  return `${event === undefined ? '' : `event: ${event}\n`}${lines}\n`
}

export async function sendDownload ({ source, type, filename, options }: DownloadReply, context: RequestContext, log: Log): Promise<void> {
  const { response } = context
  const name = filename.replace(/[^\w.\-]/g, '_')
  response.writeHead(200, { ...options.headers, 'content-type': type, 'content-disposition': `attachment; filename="${name}"` })
  await pipeline(source, response).catch((error: unknown) => {
    if (!context.signal.aborted) log.error({ err: error, requestId: context.requestId }, 'a download was cut short')
  })
}
