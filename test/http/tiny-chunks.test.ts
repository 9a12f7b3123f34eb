import { once } from 'node:events'
import { connect } from 'node:net'
import { allow, definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { ChunkCount } from '../../sdk/http1/tiny-chunks.js'

const post = (url: string, chunk: string): string =>
  `POST ${url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${`${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(10_000)}0\r\n\r\n`

test('a body in thousands of tiny chunks ends its connection, whoever would read it', async t => {
  const body = definePlugin({
    id: 'body',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/body',
        summary: 'Reads a body',
        access: allow.public('a test'),
        body: 'stream',
        handler: async ({ body }) => {
          let bytes = 0
          for await (const chunk of body ?? []) bytes += (chunk as Buffer).length
          return { bytes }
        }
      })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'body' }, definition: body }] })
  t.teardown(async () => {
    await k.close()
  })
  let chunks = 0
  k.kernel.edge.server.prependListener('request', request => {
    const push = request.push.bind(request)
    request.push = (...chunk) => {
      chunks += 1
      return push(...chunk)
    }
  })
  const say = async (bytes: string): Promise<string> => {
    const client = connect(k.port, '127.0.0.1').on('error', () => {})
    let said = ''
    client.on('data', data => {
      said += String(data)
    })
    client.write(bytes)
    await once(client, 'close', { signal: AbortSignal.timeout(20_000) })
    return said
  }
  for (const url of ['/api/body', '/api/auth/login', '/api/version', '/nothing']) {
    chunks = 0
    t.match(await say(post(url, 'a')), /^(HTTP\/1\.1 4\d\d |$)/, url)
    t.ok(chunks < 1_500, `${url}: ${chunks} of 10000 were parsed`)
  }
  t.match(await say(post('/api/body', 'a'.repeat(20))), /^HTTP\/1\.1 200 [\s\S]*"bytes":200000/)
})

test('chunks that come one by one may be as small as they like', t => {
  const alone = new ChunkCount()
  for (let read = 0; read < 10_000; read++) if (alone.isTooFine(read, 1)) t.fail(`refused the ${read}th`)
  // An event and its newline, written one after the other and sent together.
  const pairs = new ChunkCount()
  for (let read = 0; read < 10_000; read++)
    if (pairs.isTooFine(read, 300) || pairs.isTooFine(read, 1)) t.fail(`refused the ${read}th pair`)
  const together = new ChunkCount()
  let passed = 0
  while (passed < 10_000 && !together.isTooFine(0, 1)) passed++
  t.equal(passed, 999)
  // A large one among them buys little.
  const mixed = new ChunkCount()
  passed = 0
  while (passed < 100_000 && !mixed.isTooFine(0, passed === 0 ? 1_000_000 : passed === 1 ? 60_000 : 1))
    passed++
  t.ok(passed < 3_000, `${passed} passed`)
  t.end()
})
