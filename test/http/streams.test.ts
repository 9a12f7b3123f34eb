import { EventEmitter, once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { allow, definePlugin, download, type Reply, type SseFrame, sse } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { currentPlugin } from '../../core/frames/frames.js'

const open = allow.public('a test')
const frame: SseFrame = { data: 'x' }

/** Until a source ends by itself: longer than it takes to fill all buffers on a busy machine. */
const sourceMs = 30_000

let produced = 0
let returned = 0
/** Whether a source has ended by itself. */
let isUsedUp = false
let owner: string | undefined

/** Never waits for anything: as fast as a generator can be. It ends by itself, so that a test that fails ends too. */
async function* endless(): AsyncGenerator<SseFrame> {
  try {
    for (const end = Date.now() + sourceMs; Date.now() < end; produced++) yield frame
    isUsedUp = true
  } finally {
    returned++
  }
}

/** As `endless`, without a `return` by which it could be told to end. */
const deaf: AsyncIterable<SseFrame> = {
  [Symbol.asyncIterator]: () => {
    const end = Date.now() + sourceMs
    return {
      next: async () => {
        produced++
        isUsedUp = Date.now() >= end
        return isUsedUp ? { value: undefined, done: true } : { value: frame }
      }
    }
  }
}

/** Takes half a second, and waits for nothing. What it gives is too little for any buffer. */
async function* busy(): AsyncGenerator<SseFrame> {
  for (let n = 0; n < 100; n++) {
    for (const end = performance.now() + 5; performance.now() < end; );
    yield frame
  }
}

async function* chunks(): AsyncGenerator<Buffer> {
  try {
    for (const end = Date.now() + sourceMs; Date.now() < end; produced++) yield Buffer.alloc(1024, 'x')
    isUsedUp = true
  } finally {
    returned++
  }
}

async function* busyChunks(): AsyncGenerator<Buffer> {
  for await (const _ of busy()) yield Buffer.from('x')
}

async function* owned(): AsyncGenerator<SseFrame> {
  await turn()
  owner = currentPlugin()
  yield frame
}

/** In all the forms in which frames may be given. */
async function* written(): AsyncGenerator<SseFrame | readonly SseFrame[] | Uint8Array> {
  yield frame
  yield [frame, { id: '1', data: 'é' }]
  yield Buffer.from('id: 2\ndata: \u{1f600}\n\n')
  yield new Uint8Array()
  yield frame
}

const limited = new EventEmitter()

/** Says something once its time is long over, unless it was told to stop. */
async function* patient(signal: AbortSignal): AsyncGenerator<string> {
  yield 'first '
  await once(limited, 'over', { signal })
  yield 'last'
}

const streams = {
  manifest: { id: 'streams' },
  definition: definePlugin({
    id: 'streams',
    routes(route) {
      const get = (name: string, handler: () => Reply): void => {
        route({ method: 'GET', url: `/api/streams/${name}`, summary: 's', access: open, handler })
      }
      get('endless', () => sse(endless()))
      get('download', () => download(Readable.from(chunks()), { type: 'text/plain', filename: 'x' }))
      get('deaf', () => sse(deaf))
      get('busy', () => sse(busy()))
      get('busy-download', () => download(Readable.from(busyChunks()), { type: 'text/plain', filename: 'x' }))
      const limit = { method: 'GET', summary: 's', access: open, timeoutMs: 200 } as const
      route({
        ...limit,
        url: '/api/streams/patient-events',
        handler: ({ signal }) => sse(Readable.from(patient(signal)).map(data => ({ data })))
      })
      route({
        ...limit,
        url: '/api/streams/patient-download',
        handler: ({ signal }) =>
          download(Readable.from(patient(signal)), { type: 'text/plain', filename: 'x' })
      })
      route({
        ...limit,
        url: '/api/streams/hanging',
        handler: async ({ signal }) => {
          await once(limited, 'over', { signal })
        }
      })
      get('owned', () => sse(owned()))
      get('written', () => sse(written()))
      get('none', () => sse({} as AsyncIterable<SseFrame>, { heartbeatMs: 1 }))
      get('nothing', () =>
        sse(
          (async function* () {
            yield undefined as never
          })()
        )
      )
    },
    sockets(socket) {
      socket({
        url: '/api/ws/streams',
        summary: 's',
        access: allow.token('read', { project: 'none' }),
        handler: async duplex => {
          const sendAll = async (): Promise<void> => {
            for (const end = Date.now() + sourceMs; Date.now() < end; produced++) await duplex.send('{}')
          }
          await sendAll().finally(() => {
            returned++
          })
        }
      })
    }
  })
}

async function startStreams(t: Test): Promise<{ k: TestKernel; lines: string[] }> {
  const lines: string[] = []
  const k = await createTestKernel({
    inline: [streams],
    onLog: line => {
      lines.push(line)
    }
  })
  t.teardown(() => k.close())
  return { k, lines }
}

for (const path of ['/api/streams/endless', '/api/streams/download']) {
  test(`${path}: others are served while a source never waits, and it ends with its client`, async t => {
    const { k } = await startStreams(t)
    const before = returned
    const response = await k.as.anonymous().open(path)
    response.resume()
    for (let n = 0; n < 5; n++) {
      const startedAt = performance.now()
      t.equal((await k.as.anonymous().get('/api/version')).status, 200)
      t.ok(
        performance.now() - startedAt < 4_000,
        `answered after ${Math.round(performance.now() - startedAt)} ms`
      )
    }
    response.destroy()
    t.ok(await until(() => returned === before + 1, 'the source was told to end', 2_000))
    const soFar = produced
    await turn()
    t.equal(produced, soFar, 'nothing is asked of it any more')
  })

  test(`${path}: a client that does not read holds the source up`, async t => {
    const { k } = await startStreams(t)
    isUsedUp = false
    const response = await k.as.anonymous().open(path)
    response.pause()
    let last = -1
    t.ok(
      await until(
        async () => {
          const isStill = produced === last
          last = produced
          await sleep(100)
          return isStill
        },
        'it stands still',
        sourceMs - 5_000
      )
    )
    t.notOk(isUsedUp, 'it has more to give')
    response.destroy()
  })
}

for (const path of ['/api/streams/busy', '/api/streams/busy-download']) {
  test(`${path}: the event loop turns while a source works`, async t => {
    const { k } = await startStreams(t)
    const response = await k.as.anonymous().open(path)
    response.resume()
    let turns = 0
    let isOver = false
    response.once('close', () => {
      isOver = true
    })
    for (; !isOver; turns++) await turn()
    t.ok(turns > 10, `${turns} turns`)
  })
}

test('a source that cannot be told to end is asked for nothing once its client has gone', async t => {
  const { k } = await startStreams(t)
  isUsedUp = false
  const response = await k.as.anonymous().open('/api/streams/deaf')
  response.resume()
  await once(response, 'data')
  response.destroy()
  let last = -1
  await until(async () => {
    const isStill = produced === last
    last = produced
    await sleep(100)
    return isStill
  }, 'the source stands still')
  t.notOk(isUsedUp, 'it had more to give')
})

test("a stream goes on beyond its route's time limit, at which a handler that has not answered is given up", async t => {
  const { k } = await startStreams(t)
  const texts = await Promise.all(
    ['patient-events', 'patient-download'].map(async name => {
      const response = await k.as.anonymous().open(`/api/streams/${name}`)
      return { name, read: text(response) }
    })
  )
  // Begun later with the same limit: when it is over, so are theirs.
  t.match(await k.as.anonymous().get('/api/streams/hanging'), { status: 503, body: { code: 'E_TIMEOUT' } })
  limited.emit('over')
  for (const { name, read } of texts) t.match(await read, /first [\s\S]*last/, name)
})

test('frames are written one by one or together, and those that are written already are sent as they are', async t => {
  const { k } = await startStreams(t)
  t.equal(
    await text(await k.as.anonymous().open('/api/streams/written')),
    'data: x\n\ndata: x\n\nid: 1\ndata: é\n\nid: 2\ndata: \u{1f600}\n\ndata: x\n\n'
  )
})

test('what a source leaves behind has its plugin as its owner', async t => {
  const { k } = await startStreams(t)
  t.match(await k.as.anonymous().get('/api/streams/owned'), { status: 200, body: 'data: x\n\n' })
  t.equal(owner, 'streams')
})

test('an event stream without a source is 500, and one that gives nothing ends; both are logged with the plugin', async t => {
  const { k, lines } = await startStreams(t)
  t.match(await k.as.anonymous().get('/api/streams/none'), { status: 500, body: { code: 'E_INTERNAL' } })
  t.match(await k.as.anonymous().get('/api/streams/nothing'), { status: 200, body: null })
  const faults = lines
    .filter(line => line.includes('"level":"error"'))
    .map(line => JSON.parse(line) as { plugin?: string })
  t.same(
    faults.map(({ plugin }) => plugin),
    ['streams', 'streams']
  )
})

test('others are served while a socket handler only sends, and it ends with its client', async t => {
  const { k } = await startStreams(t)
  const reader = await k.as.token('read')
  const before = returned
  const socket = await k.socket(reader, '/api/ws/streams')
  for (let n = 0; n < 5; n++) {
    const startedAt = performance.now()
    t.equal((await k.as.anonymous().get('/api/version')).status, 200)
    t.ok(
      performance.now() - startedAt < 4_000,
      `answered after ${Math.round(performance.now() - startedAt)} ms`
    )
  }
  await socket.close()
  t.ok(await until(() => returned === before + 1, 'its next send was refused', 2_000))
})
