import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { S3Bucket } from '../../sdk/s3/index.js'

const { signal } = new AbortController()
const minute = 60_000

/** An object whose bytes come when somebody writes them, and a clock that stands still meanwhile. */
async function openObject(t: Test) {
  let answering: ServerResponse | undefined
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': 1_000_000_000 })
    response.flushHeaders()
    answering = response
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const clock = testClock()
  const bucket = new S3Bucket(
    {
      endpoint: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: 'us-east-1',
      bucket: 'backups',
      useSsl: false,
      accessKey: 'AKIDOFTHETEST',
      secretKey: 'correct horse battery staple'
    },
    { clock }
  )
  const chunks = bucket.chunks('dump', { signal })
  const first = chunks.next()
  const store = await until(() => answering, 'the object to be asked for')
  store.write('x')
  await first
  /** The next piece, for which the store lets its reader wait so long. */
  const next = async (ms: number, bytes: number): Promise<number> => {
    const read = chunks.next()
    read.catch(() => {})
    await clock.advance(ms)
    store.write(Buffer.alloc(bytes))
    return (await read).value?.length ?? 0
  }
  /** So much at once, to its end. */
  const give = async (bytes: number): Promise<void> => {
    store.write(Buffer.alloc(bytes))
    for (let read = 0; read < bytes; ) read += (await chunks.next()).value?.length ?? 0
  }
  return { clock, chunks, next, give }
}

test('a store that gives a byte now and then does not hold its reader for days', async t => {
  const { next } = await openObject(t)
  t.equal(await next(minute, 1), 1)
  t.equal(await next(minute - 1, 1), 1)
  await t.rejects(next(minute, 1), {
    name: 'Error',
    message: /^127\.0\.0\.1:\d+ gives the object too slowly: \d+ bytes in 180 s$/
  })
})

test('what counts is what the store is waited for: a slow reader, and a large object, have their time', async t => {
  const { clock, chunks, next, give } = await openObject(t)
  await clock.advance(3_600 * minute)
  t.equal(await next(minute, 1), 1, 'who reads has let the store wait')
  // At 32 KiB a second each mebibyte has half a minute more.
  await give(10 * 2 ** 20)
  t.equal(await next(5 * minute, 1), 1, 'what has come fast is counted')
  await chunks.return(undefined)
})
