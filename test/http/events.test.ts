import { getEventListeners } from 'node:events'
import { Writable } from 'node:stream'
import type { Log, SseFrame, StreamReply } from 'busbar/sdk'
import { test } from 'tap'
import type { RequestContext } from '../../core/http/request-context.js'
import { checkHeartbeat, frameText, sendEvents } from '../../core/http/streams.js'

/** A request for an event stream, and what is written to its client. */
function setUp() {
  const end = new AbortController()
  const errors: string[] = []
  const log = { error: (_fields: unknown, message: string) => errors.push(message) } as unknown as Log
  let text = ''
  const response = Object.assign(
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        text += String(chunk)
        done()
      }
    }),
    { writeHead: () => {}, flushHeaders: () => {} }
  )
  let unwatched = 0
  let lose = (): void => {}
  const context = {
    response,
    signal: end.signal,
    requestId: 'r1',
    record: { plugin: 'a' },
    caller: { kind: 'anonymous' },
    ip: '10.0.0.1',
    abort: (reason: unknown) => end.abort(reason),
    watchAccess: (look: () => void) => {
      lose = look
      return () => unwatched++
    }
  } as unknown as RequestContext
  const send = async (frames: AsyncIterator<SseFrame>, heartbeatMs: number | null = null): Promise<void> =>
    await sendEvents(frames, { heartbeatMs } as StreamReply, context, log)
  return {
    end,
    errors,
    response,
    context,
    send,
    text: () => text,
    unwatched: () => unwatched,
    lose: () => lose()
  }
}

async function* two(): AsyncGenerator<SseFrame> {
  yield { data: 'one' }
  yield { event: 'more', data: { n: 2 } }
}

test('an event stream ends with its source, and leaves nothing on the signal of the request', async t => {
  const { end, errors, response, send, text, unwatched } = setUp()
  await send(two(), 60_000)
  t.equal(text(), ': ping\n\ndata: one\n\nevent: more\ndata: {"n":2}\n\n')
  t.equal(response.writableEnded, true)
  t.equal(unwatched(), 1)
  t.same(getEventListeners(end.signal, 'abort'), [])
  t.same(errors, [])
})

test('a source is asked for nothing where the request has ended before', async t => {
  const { end, send, text, response } = setUp()
  let asked = 0
  let returned = 0
  end.abort()
  await send({
    next: async () => {
      asked++
      return { done: false, value: { data: '' } }
    },
    return: async () => {
      returned++
      return { done: true, value: undefined }
    }
  })
  t.equal(asked, 0)
  t.equal(returned, 1)
  t.equal(text(), '', 'without a heartbeat there is no ping')
  t.equal(response.writableEnded, true)
})

test('a source that hangs keeps no stream open when the request ends, or its caller may not see it any more', async t => {
  for (const why of ['gone', 'lost'] as const) {
    const { end, send, lose, errors, response, unwatched } = setUp()
    const sending = send({ next: () => new Promise(() => {}) })
    if (why === 'gone') end.abort()
    else lose()
    await sending
    t.equal(response.writableEnded, true, why)
    t.equal(end.signal.aborted, true)
    t.equal(unwatched(), 1)
    t.same(errors, [])
  }
})

test('an error of a source is logged, unless the request has ended', async t => {
  const failing = (end?: AbortController): AsyncIterator<SseFrame> => ({
    next: async () => {
      end?.abort()
      throw new Error('broken')
    }
  })
  const one = setUp()
  await one.send(failing())
  t.same(one.errors, ['an event stream ended with an error'])
  t.equal(one.response.writableEnded, true)
  const other = setUp()
  await other.send(failing(other.end))
  t.same(other.errors, [])
})

test('a heartbeat is what a timer takes, or none', t => {
  const check = (heartbeatMs: number | null) => () => checkHeartbeat({ heartbeatMs } as StreamReply)
  for (const fine of [null, 1, 15_000, 2_147_483_647]) t.doesNotThrow(check(fine))
  for (const bad of [0, 0.5, -1, 2_147_483_648, Number.NaN, Number.POSITIVE_INFINITY])
    t.throws(check(bad), RangeError, `${bad}`)
  t.end()
})

test('each line of a frame has its own field, however it ends', t => {
  t.equal(frameText({ data: 'a\nb\r\nc\rd' }), 'data: a\ndata: b\ndata: c\ndata: d\n\n')
  t.equal(frameText({ data: '' }), 'data: \n\n')
  t.end()
})
