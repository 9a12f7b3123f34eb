import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, download, type Reply, type SseFrame, sse } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const made: Readable[] = []
const source = (text = 'hello'): Readable => {
  const readable = Readable.from([text])
  made.push(readable)
  return readable
}
const plain = { type: 'text/plain', filename: 'x' }
const sized = (length: string): Reply =>
  download(source(), { ...plain, headers: { 'content-length': length } })

const downloads = {
  manifest: { id: 'downloads' },
  definition: definePlugin({
    id: 'downloads',
    routes(route) {
      const get = (name: string, handler: () => Reply | Promise<Reply>): void => {
        route({
          method: 'GET',
          url: `/api/downloads/${name}`,
          summary: 's',
          access: allow.public('a test'),
          timeoutMs: 1_000,
          handler
        })
      }
      get('right', () => sized('5'))
      get('fewer', () => sized('2'))
      get('more', () => sized('20'))
      get('nameless', () => download(source(), { type: 'text/plain' } as never))
      get('typeless', () => download(source(), { filename: 'x' } as never))
      get('bad-type', () => download(source(), { ...plain, type: 'a\nb' }))
      get('bad-header', () => download(source(), { ...plain, headers: { 'x y': 'z' } }))
      get('beat', () => sse(source() as AsyncIterable<SseFrame>, { heartbeatMs: Number.NaN }))
      const late = async (result: () => Reply): Promise<Reply> => {
        await sleep(2_500)
        return result()
      }
      get('late', () => late(() => download(source(), plain)))
      get('late-stream', () => late(() => sse(source() as AsyncIterable<SseFrame>)))
    }
  })
}

test('downloads', async t => {
  const k = await createTestKernel({ inline: [downloads] })
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()

  /** What comes on one connection for two requests, one after the other. */
  const both = async (path: string): Promise<string> => {
    const socket = connect(k.port, '127.0.0.1').on('error', () => {})
    let text = ''
    let isOver = false
    socket.on('data', data => {
      text += String(data)
    })
    socket.on('close', () => {
      isOver = true
    })
    const ask = (url: string): void => {
      socket.write(`GET ${url} HTTP/1.1\r\nHost: a\r\n\r\n`)
    }
    ask(`/api/downloads/${path}`)
    await until(
      () => isOver || text.includes('\r\n\r\nhello'),
      'the body, or the end of the connection',
      3_000
    )
    if (!isOver) ask('/api/version')
    await until(
      () => isOver || text.includes('"version"'),
      'the second answer, or the end of the connection',
      2_000
    )
    socket.destroy()
    return text
  }

  await t.test('of the length that was told leave the connection to the next request', async t => {
    t.match(await both('right'), /hello.*HTTP\/1\.1 200/s)
  })

  await t.test('of another length end with their connection', async t => {
    for (const path of ['fewer', 'more']) t.notMatch(await both(path), /"version"/, path)
  })

  await t.test('with a head that cannot be written are answered, and the source is given up', async t => {
    for (const path of ['nameless', 'typeless', 'bad-type', 'bad-header', 'beat']) {
      const answer = await Promise.race([
        anyone.get(`/api/downloads/${path}`),
        sleep(4_000, { status: 'none' })
      ])
      t.equal(answer.status, 500, path)
      t.ok(await until(() => made.at(-1)?.destroyed === true, `${path}: its source is destroyed`, 1_000))
    }
  })

  await t.test('that come after the time limit are given up', async t => {
    for (const path of ['late', 'late-stream']) {
      const before = made.length
      t.equal((await anyone.get(`/api/downloads/${path}`)).status, 503, path)
      t.ok(await until(() => made.length > before, 'its source is made', 5_000))
      t.ok(await until(() => made.at(-1)?.destroyed === true, `${path}: its source is destroyed`, 1_000))
    }
  })

  await t.test('that come when the client has gone are given up', async t => {
    const before = made.length
    await fetch(`${k.url}/api/downloads/late`, { signal: AbortSignal.timeout(300) }).catch(() => {})
    t.ok(await until(() => made.length > before, 'its source is made', 5_000))
    t.ok(await until(() => made.at(-1)?.destroyed === true, 'its source is destroyed', 1_000))
  })
})
