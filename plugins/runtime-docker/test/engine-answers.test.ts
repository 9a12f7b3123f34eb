import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DockerOptions } from 'dockerode'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { AnswerBody } from '../answers/answer-body.js'
import { readHead } from '../answers/answer-head.js'
import { EngineAnswer } from '../answers/engine-answer.js'
import { ReadBytes } from '../answers/read-bytes.js'

const seed = 20_260_101

/** The same bytes in pieces of these lengths, again and again. */
function cutUp(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const length = lengths[n % lengths.length] ?? 1
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

function bodyOf(pieces: readonly Buffer[], body: AnswerBody): Buffer {
  const found: Buffer[] = []
  for (const piece of pieces)
    body.read(new ReadBytes(piece), 0, ({ bytes }, start, end) => {
      found.push(Buffer.from(bytes.subarray(start, end)))
    })
  return Buffer.concat(found)
}

const chunked = () => new AnswerBody({ framing: { kind: 'chunked' } })

test('a body in chunks is found however it is cut, and nothing behind its end', t => {
  const chunk = fc.record({
    data: fc.uint8Array({ minLength: 1, maxLength: 60 }),
    extension: fc.constantFrom('', ';a', ';a="b c"'),
    isUpper: fc.boolean()
  })
  const lengths = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(
      fc.array(chunk, { maxLength: 10 }),
      fc.constantFrom('', 'A: b\r\n', 'A: b\r\nC:\r\n'),
      lengths,
      (chunks, trailer, cuts) => {
        const sent = Buffer.concat([
          ...chunks.flatMap(({ data, extension, isUpper }) => {
            const size = data.length.toString(16)
            return [
              Buffer.from(`${isUpper ? size.toUpperCase() : size}${extension}\r\n`),
              data,
              Buffer.from('\r\n')
            ]
          }),
          Buffer.from(`0\r\n${trailer}\r\n`)
        ])
        const body = chunked()
        const before = bodyOf(cutUp(sent.subarray(0, -1), cuts), body)
        t.notOk(body.isOver)
        t.notOk(body.mayEnd)
        const rest = bodyOf([Buffer.concat([sent.subarray(-1), Buffer.from('5\r\nothers')])], body)
        t.ok(body.isOver)
        t.same(Buffer.concat([before, rest]), Buffer.concat(chunks.map(({ data }) => data)))
      }
    ) as never,
    { seed, numRuns: 300 }
  )
  t.end()
})

test('what is no chunk is refused', t => {
  for (const text of ['x\r\n', '\r\n', '1\r\nab\r\n', '-1\r\n', `${'f'.repeat(13)}\r\n`])
    t.throws(() => bodyOf([Buffer.from(text)], chunked()), { message: /chunk/ }, JSON.stringify(text))
  t.end()
})

test('a body with a length ends there, and one without ends with the connection', t => {
  const fixed = new AnswerBody({ framing: { kind: 'length', bytes: 5 } })
  t.equal(bodyOf([Buffer.from('ab')], fixed).toString(), 'ab')
  t.notOk(fixed.mayEnd)
  t.equal(bodyOf([Buffer.from('cdefg')], fixed).toString(), 'cde')
  t.ok(fixed.isOver)
  t.ok(new AnswerBody({ framing: { kind: 'length', bytes: 0 } }).isOver)
  const open = new AnswerBody({ framing: { kind: 'close' } })
  t.equal(bodyOf([Buffer.from('ab'), Buffer.from('c')], open).toString(), 'abc')
  t.notOk(open.isOver)
  t.ok(open.mayEnd)
  t.end()
})

test('a head is read when it has come whole, behind those that only announce it', t => {
  const text = 'HTTP/1.1 200 OK\r\ncontent-TYPE: a:b\r\nTransfer-Encoding: Chunked\r\n\r\n'
  const bytes = Buffer.from(`HTTP/1.1 100 Continue\r\n\r\n${text}body`)
  for (let length = 0; length < bytes.length - 4; length++)
    t.equal(readHead(bytes.subarray(0, length)), undefined)
  t.same(readHead(bytes), { status: 200, framing: { kind: 'chunked' }, end: bytes.length - 4 })
  const framing = (head: string) => readHead(Buffer.from(`${head}\r\n\r\n`))?.framing
  t.same(framing('HTTP/1.0 404 Not Found\r\nContent-Length: 12'), { kind: 'length', bytes: 12 })
  t.same(framing('HTTP/1.1 200 OK\r\nContent-Length: x'), { kind: 'close' })
  t.same(framing('HTTP/1.1 204 No Content'), { kind: 'length', bytes: 0 })
  t.throws(() => readHead(Buffer.from('SSH-2.0-x\r\n\r\n')), { message: /no answer by HTTP/ })
  t.throws(() => readHead(Buffer.alloc(100_000, 'x')), { message: /without an end/ })
  t.end()
})

const { signal } = new AbortController()

async function listening(t: Test, server: Server, at: string | number): Promise<number> {
  server.listen(at)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return typeof at === 'string' ? 0 : (server.address() as AddressInfo).port
}

/** The same server at a socket, at a port, and at a port with TLS. */
async function ways(t: Test, answer: RequestListener): Promise<Record<string, DockerOptions>> {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-answers-'))
  t.teardown(async () => await rm(folder, { recursive: true }))
  const [key, cert] = ['key.pem', 'cert.pem'].map(name => join(folder, name)) as [string, string]
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert]
  ])
  const files = { key: await readFile(key), cert: await readFile(cert) }
  const socketPath = join(folder, 'engine.sock')
  await listening(t, createServer(answer), socketPath)
  const port = await listening(t, createServer(answer), 0)
  const securePort = await listening(t, createSecureServer(files, answer), 0)
  return {
    'a socket': { socketPath },
    'a port': { host: '127.0.0.1', port, protocol: 'http' },
    'a port with TLS': { host: 'localhost', port: securePort, protocol: 'https', ca: files.cert }
  }
}

test('what an engine tells by lines is read whole at each kind of address, and nothing more than is asked for', async t => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `line ${n} ${'x'.repeat(400)}\n`)
  const engines = await ways(t, (request, response) => {
    t.ok(request.headers.host)
    if (request.url === '/containers/a%20b/logs') for (const line of lines) response.write(line)
    response.end()
  })
  for (const [name, options] of Object.entries(engines)) {
    let text = ''
    const take = ({ latin1 }: ReadBytes, start: number, end: number): void => {
      text += latin1.slice(start, end)
    }
    const answer = await EngineAnswer.open(options, '/containers/a%20b/logs', take, signal)
    // Meanwhile all of it could have come.
    for (let n = 0; n < 50; n++) await EngineAnswer.open(options, '/other', take, signal)
    t.ok(text.length < 256 * 1024, `${name}: ${text.length} characters were not asked for`)
    while ((await answer.more()) > 0);
    t.equal(text, lines.join(''), name)
    t.equal(await answer.more(), 0, 'the end stays the end')
  }
})

test('a refusal is told with its status and its words, and an abort ends what waits', async t => {
  const engines = await ways(t, (request, response) => {
    if (request.url === '/no') {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no such container"}')
    } else response.write('a line\n')
  })
  for (const [name, options] of Object.entries(engines)) {
    const refusal = EngineAnswer.open(options, '/no', () => t.fail('a refusal has no body'), signal)
    t.match(
      await refusal.catch((error: unknown) => error),
      { statusCode: 404, json: { message: 'no such container' } },
      name
    )
    const end = new AbortController()
    let text = ''
    const take = ({ latin1 }: ReadBytes, start: number, stop: number): void => {
      text += latin1.slice(start, stop)
    }
    const answer = await EngineAnswer.open(options, '/follow', take, end.signal)
    while (text !== 'a line\n') await answer.more()
    const rest = answer.more()
    end.abort()
    await t.rejects(rest, { code: 'ERR_STREAM_PREMATURE_CLOSE' }, name)
  }
  await t.rejects(
    EngineAnswer.open({ socketPath: '/nothing/here.sock' }, '/', () => {}, signal),
    { code: 'ENOENT' }
  )
})
