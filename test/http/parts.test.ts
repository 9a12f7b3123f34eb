import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { download, reply, sse, type TSchema, Type } from 'busbar/sdk'
import type { FastifyReply } from 'fastify'
import { test } from 'tap'
import type { RouteRecord } from '../../core/declarations/records.js'
import { answerValue } from '../../core/http/answer-value.js'
import { BodyWatch, bodyMemory, judgeBody } from '../../core/http/body-watch.js'
import { applyCors } from '../../core/http/cors.js'
import { discardResult } from '../../core/http/discard-result.js'
import { refuseHead, refuseUpgrade } from '../../core/http/head-refusal.js'
import { InFlight } from '../../core/http/in-flight.js'
import { writeInPieces } from '../../core/http/long-lists.js'
import { takesNull } from '../../core/http/missing-value.js'
import { toProblem } from '../../core/http/problems.js'
import { setRateHeaders } from '../../core/http/rate-headers.js'
import type { RequestContext } from '../../core/http/request-context.js'
import { findConflicts, RouteTable } from '../../core/http/route-table.js'
import { isBodyComing, leaveUnread } from '../../core/http/unread-body.js'
import { Problem } from '../../sdk/errors.js'

/** A request whose body, if it has any, has not arrived, and its answer; nothing goes to a network. */
function exchange(
  headers: Record<string, string> = {},
  method = 'GET'
): { readonly request: IncomingMessage; readonly response: ServerResponse } {
  const request = new IncomingMessage(new Socket())
  request.method = method
  request.url = '/'
  request.httpVersion = '1.1'
  request.httpVersionMajor = 1
  request.httpVersionMinor = 1
  const all = { host: 'busbar.example', ...headers }
  request.headers = all
  request.rawHeaders = Object.entries(all).flat()
  return { request, response: new ServerResponse(request) }
}

const bodyOf = (length: number): Record<string, string> => ({ 'content-length': String(length) })

const origins = ['https://app.example']

test('an origin that is listed may read the answer, and no other', t => {
  const allowed = exchange({ origin: 'https://APP.example' })
  t.equal(applyCors(allowed.request, allowed.response, origins), false)
  t.match(allowed.response.getHeaders(), {
    vary: 'Origin',
    'access-control-allow-origin': 'https://APP.example',
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': /x-total-count/
  })
  t.notOk(allowed.response.hasHeader('access-control-allow-methods'), 'no preflight')
  const other = exchange({ origin: 'https://evil.example' })
  t.equal(applyCors(other.request, other.response, origins), false)
  t.strictSame(other.response.getHeaders(), { __proto__: null, vary: 'Origin' })
  const page = exchange()
  applyCors(page.request, page.response, [])
  t.strictSame(page.response.getHeaderNames(), [], 'without a list answers do not vary')
  t.end()
})

test('a preflight is answered, with what is allowed where the origin is', t => {
  const ask = { 'access-control-request-method': 'PUT' }
  const allowed = exchange({ origin: 'https://app.example', ...ask }, 'OPTIONS')
  t.equal(applyCors(allowed.request, allowed.response, origins), true)
  t.equal(allowed.response.statusCode, 204)
  t.equal(allowed.response.writableEnded, true)
  t.equal(allowed.request.readableFlowing, true, 'a body would be read and thrown away')
  t.match(allowed.response.getHeaders(), {
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': /authorization/,
    'access-control-max-age': '600'
  })
  for (const headers of [{ origin: 'https://evil.example', ...ask }, { origin: 'https://app.example' }]) {
    const { request, response } = exchange(headers, 'OPTIONS')
    t.equal(applyCors(request, response, origins), true)
    t.notOk(response.hasHeader('access-control-allow-methods'))
    t.equal(response.statusCode, 204)
  }
  t.end()
})

test('the headers of a budget tell its limit, what is left, and the second at which it is fresh', t => {
  const { response } = exchange()
  setRateHeaders(response, { allowed: true, limit: 10, remaining: 4, resetAt: 1_500_001 })
  t.strictSame(response.getHeaders(), {
    __proto__: null,
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '4',
    'x-ratelimit-reset': '1501'
  })
  t.end()
})

test('a head is refused for its form or the number of its headers, and an upgrade for a body too', t => {
  t.equal(refuseHead(exchange().request), null)
  t.equal(refuseUpgrade(exchange({ 'content-length': '0' }).request), null)
  t.equal(refuseHead(exchange({ 'content-length': '5' }, 'POST').request), null)
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`x-${at}`, '']))
  for (const refuse of [refuseHead, refuseUpgrade])
    t.match(refuse(exchange(many).request), { status: 431, message: /more than 200 headers/ })
  const twoHosts = exchange()
  twoHosts.request.rawHeaders.push('host', 'other.example')
  for (const refuse of [refuseHead, refuseUpgrade])
    t.match(refuse(twoHosts.request), { status: 400, code: 'E_REQUEST_INVALID' })
  for (const body of [bodyOf(1), { 'transfer-encoding': 'chunked' }] as Record<string, string>[])
    t.match(refuseUpgrade(exchange(body).request), {
      status: 400,
      message: /an upgrade cannot have a body/
    })
  t.end()
})

const route = (method: string, url: string, plugin: string): RouteRecord =>
  ({ method, url, plugin }) as unknown as RouteRecord

test('two plugins cannot have paths that one request may mean', t => {
  const conflicts = (mine: string, theirs: string): string[] =>
    findConflicts([route('GET', mine, 'a')], [route('GET', theirs, 'b')])
  t.match(conflicts('/api/x', '/api/x'), [/GET \/api\/x is already served by "b"/])
  t.match(conflicts('/api/:id', '/api/:name'), [/is already served by "b"/], 'parameters have no names here')
  t.match(conflicts('/api/x', '/api/:id'), [/is hidden by, or hides, \/api\/:id of "b"/])
  t.match(conflicts('/api/:id', '/api/x'), [/is hidden by/])
  t.match(conflicts('/api/:id/x', '/api/y/:z'), [/is hidden by/], 'one segment each')
  t.same(conflicts('/api/x', '/api/y'), [])
  t.same(conflicts('/api/:id/x', '/api/:id/y'), [])
  t.same(conflicts('/api/:id', '/api/x/y'), [], 'of other lengths')
  t.same(conflicts('/api/x/y', '/api/:id'), [])
  t.same(findConflicts([route('GET', '/x', 'a')], [route('POST', '/x', 'b')]), [], 'other methods')
  t.same(findConflicts([route('GET', '/x', 'a')], [route('GET', '/x', 'a')]), [], 'its own')
  t.same(findConflicts([route('GET', '/x', 'a')], []), [])
  t.end()
})

test('a table finds who serves a path, with its parameters, and long ones too', t => {
  const instance = {} as never
  const entries = [
    { record: route('GET', '/api/apps/:id', 'a'), instance },
    { record: route('GET', '/api/apps', 'a'), instance },
    { record: route('POST', '/api/apps', 'b'), instance: undefined }
  ]
  const table = new RouteTable(entries)
  t.equal(table.find('GET', '/api/apps')?.entry, entries[1])
  t.equal(table.find('POST', '/api/apps')?.entry, entries[2])
  t.equal(table.find('PUT', '/api/apps'), undefined)
  t.equal(table.find('GET', '/api'), undefined)
  const long = 'x'.repeat(512)
  t.same(table.find('GET', `/api/apps/${long}`)?.params, { id: long })
  t.equal(table.find('GET', `/api/apps/${long}x`), undefined)
  t.same([...table.instances], [instance], 'each once, and none for a plugin that is off')
  t.end()
})

test('a body keeps its pace after the grace, and one that nobody reads has a length', t => {
  const whole = { kind: 'json', limit: 100 } as const
  t.equal(judgeBody(whole, 10_000, 0), 'fine')
  t.equal(judgeBody(whole, 10_001, 0), 'late')
  t.equal(judgeBody(whole, 11_000, 16 * 1024), 'fine')
  t.equal(judgeBody(whole, 11_000, 16 * 1024 - 1), 'late')
  const stream = { kind: 'stream', limit: 100 } as const
  t.equal(judgeBody(stream, 30_000, 0), 'fine')
  t.equal(judgeBody(stream, 31_000, 1024), 'fine')
  t.equal(judgeBody(stream, 31_000, 1023), 'late')
  const none = { kind: 'none', limit: 100 } as const
  t.equal(judgeBody(none, 0, 100 + 64 * 1024), 'fine')
  t.equal(judgeBody(none, 0, 101 + 64 * 1024), 'long')
  t.equal(judgeBody(whole, 0, 101 + 64 * 1024), 'fine', 'who reads it looks at its length')
  t.equal(judgeBody(none, 11_000, 0), 'late')
  t.end()
})

const mebibyte = 1024 * 1024

test('bodies in memory have 32 MiB for one address and 256 MiB in all, which they give back', t => {
  const watch = new BodyWatch()
  const add = (ip: string, length: number, kind: 'json' | 'raw' | 'stream' | 'none' = 'json') => {
    const { request, response } = exchange(bodyOf(length), 'POST')
    watch.add(request, response, { kind, limit: 64 * mebibyte, ip })
    return request
  }
  const busy = { status: 503, code: 'E_BODIES_BUSY', headers: { 'retry-after': '2' } }
  t.same(bodyMemory, { perAddress: 32 * mebibyte, inAll: 256 * mebibyte })
  const first = add('10.0.0.1', 31 * mebibyte)
  add('10.0.0.1', mebibyte, 'raw')
  t.throws(() => add('10.0.0.1', 1), busy)
  add('10.0.0.1', 60 * mebibyte, 'stream')
  add('10.0.0.1', 60 * mebibyte, 'none')
  first.emit('close')
  first.emit('close')
  add('10.0.0.1', 31 * mebibyte)
  t.throws(() => add('10.0.0.1', 1), busy, 'it was given back once')
  const swept = add('10.0.1.1', 32 * mebibyte)
  swept.complete = true
  for (let n = 0; n < 3; n++) watch.sweep(performance.now())
  add('10.0.1.1', 32 * mebibyte).emit('close')
  for (let n = 2; n <= 8; n++) add(`10.0.0.${n}`, 32 * mebibyte)
  t.throws(() => add('10.0.0.9', 1), busy, 'all of it is taken')
  t.end()
})

test('of a body without a length as much is reserved as may come, and of a long one no more', t => {
  const watch = new BodyWatch()
  const limit = 16 * mebibyte
  for (const headers of [{ 'transfer-encoding': 'chunked' }, bodyOf(99 * mebibyte)] as Record<
    string,
    string
  >[]) {
    const { request, response } = exchange(headers, 'POST')
    watch.add(request, response, { kind: 'json', limit, ip: '10.0.0.1' })
    watch.add(request, response, { kind: 'json', limit, ip: '10.0.0.1' })
  }
  const third = exchange(bodyOf(1), 'POST')
  t.throws(() => watch.add(third.request, third.response, { kind: 'json', limit, ip: '10.0.0.1' }), {
    code: 'E_BODIES_BUSY'
  })
  const empty = exchange({}, 'POST')
  watch.add(empty.request, empty.response, { kind: 'json', limit, ip: '10.0.0.1' })
  t.equal(empty.request.listenerCount('close'), 0, 'a request without a body is not watched')
  t.end()
})

test('a body that does not come is answered 408, and its reader held up costs it no time', t => {
  const watch = new BodyWatch()
  const { request, response } = exchange(bodyOf(10), 'POST')
  watch.add(request, response, { kind: 'json', limit: 100, ip: '10.0.0.1' })
  const start = performance.now()
  watch.sweep(start + 9_000)
  t.equal(response.writableEnded, false)
  watch.sweep(start + 12_000)
  t.equal(response.statusCode, 408)
  t.equal(response.getHeader('connection'), 'close')
  t.equal(request.listenerCount('close'), 0, 'it is forgotten')
  const full = exchange(bodyOf(10_000_000), 'POST')
  watch.add(full.request, full.response, { kind: 'stream', limit: 100, ip: '10.0.0.1' })
  full.request.push(Buffer.alloc(full.request.readableHighWaterMark))
  watch.sweep(start + 100_000)
  t.equal(full.response.writableEnded, false, 'nobody has read what has come')
  full.request.read()
  watch.sweep(start + 200_000)
  t.equal(full.response.statusCode, 408)
  const done = exchange(bodyOf(10), 'POST')
  watch.add(done.request, done.response, { kind: 'json', limit: 100, ip: '10.0.0.1' })
  done.request.complete = true
  watch.sweep(start + 300_000)
  t.equal(done.response.writableEnded, false, 'one that is there is no longer watched')
  t.equal(done.request.listenerCount('close'), 0)
  t.end()
})

test('a body is on its way until it is complete', t => {
  t.equal(isBodyComing(exchange().request), false)
  t.equal(isBodyComing(exchange(bodyOf(0)).request), false)
  t.equal(isBodyComing(exchange(bodyOf(1)).request), true)
  t.equal(isBodyComing(exchange({ 'transfer-encoding': 'chunked' }).request), true)
  const { request } = exchange(bodyOf(1))
  request.complete = true
  t.equal(isBodyComing(request), false)
  t.end()
})

test('a short body that is refused is read away, and a long one ends its connection', t => {
  const after = (headers: Record<string, string>, before?: (response: ServerResponse) => void) => {
    const { request, response } = exchange(headers, 'POST')
    before?.(response)
    leaveUnread(request, response)
    return { isRead: request.readableFlowing === true, connection: response.getHeader('connection') }
  }
  t.same(after(bodyOf(64 * 1024)), { isRead: true, connection: undefined })
  t.same(after(bodyOf(64 * 1024 + 1)), { isRead: false, connection: 'close' })
  t.same(after({ 'transfer-encoding': 'chunked' }), { isRead: false, connection: 'close' })
  t.same(after({}), { isRead: true, connection: undefined })
  t.same(
    after(bodyOf(5), response => response.setHeader('connection', 'close')),
    { isRead: false, connection: 'close' },
    'a connection that ends needs no reading'
  )
  t.end()
})

test('the source of an answer that is not sent is closed, and what is no source is let be', async t => {
  const open = (): Readable => new Readable({ read() {} })
  const [alone, value, file, frames] = [open(), open(), open(), open()]
  discardResult(alone)
  discardResult(reply(200, value))
  t.equal(alone.destroyed, true)
  t.equal(value.destroyed, true)
  alone.destroy(new Error('a late error is nobody’s'))
  discardResult(download(file, { filename: 'a.txt', type: 'text/plain' }))
  t.equal(file.destroyed, true)
  discardResult(sse(frames as never))
  t.equal(frames.destroyed, true)
  for (const other of [undefined, null, 1, 'text', {}, [], { destroy: 1 }]) discardResult(other)
  const failing = new Readable({
    read() {},
    destroy(_error, done) {
      done(new Error('it could not be opened'))
    }
  })
  discardResult(failing)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(failing.destroyed, true, 'and its error ends nothing')
})

test('requests under way are a list without gaps, whatever order they end in', t => {
  const flight = new InFlight()
  const [a, b, c] = [{ place: -1 }, { place: -1 }, { place: -1 }] as RequestContext[] as [
    RequestContext,
    RequestContext,
    RequestContext
  ]
  for (const one of [a, b, c]) flight.add(one)
  flight.delete(a)
  t.same(
    flight.contexts.map(one => one === c || one === b),
    [true, true]
  )
  t.equal(flight.contexts[0], c)
  flight.delete(a)
  t.equal(flight.contexts.length, 2, 'one that is not there takes nobody away')
  flight.delete(b)
  t.same(flight.contexts, [c])
  flight.delete(c)
  flight.delete(c)
  t.same(flight.contexts, [])
  t.end()
})

test('a long list is written in pieces with other work in between, and reads as one', async t => {
  const items = Array.from({ length: 250 }, (_, at) => at)
  let turns = 0
  const count = setImmediate(function again() {
    turns++
    setImmediate(again).unref()
  })
  t.teardown(() => clearImmediate(count))
  const sizes: number[] = []
  const write = (piece: readonly unknown[]): string => {
    sizes.push(piece.length)
    return JSON.stringify(piece)
  }
  const text = await writeInPieces(items, write, () => true)
  t.same(JSON.parse(text), items)
  t.same(sizes, [100, 100, 50])
  t.ok(turns >= 2)
  t.equal(await writeInPieces([], JSON.stringify, () => true), '[]')
})

test('a list is written no further than somebody reads it, and than is reasonable', async t => {
  const endless = new Array<null>(4_294_967_295)
  let written = 0
  const write = (piece: readonly unknown[]): string => {
    written++
    return JSON.stringify(piece)
  }
  await t.rejects(
    writeInPieces(endless, write, () => written < 3),
    /the client has gone/
  )
  t.equal(written, 3)
  const wide = ['w'.repeat(2 ** 20)]
  await t.rejects(
    writeInPieces(
      endless,
      () => JSON.stringify(wide),
      () => true
    ),
    /a list of 4294967295, is longer than \d+ characters/
  )
})

test('null is a value where the schema says so', t => {
  const takes: ReadonlyArray<readonly [schema: object, takes: boolean]> = [
    [Type.String(), false],
    [Type.Null(), true],
    [{}, true],
    [{ type: 'string', nullable: true }, true],
    [{ type: ['string', 'null'] }, true],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, true],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, false],
    [{ oneOf: [{ type: 'null' }] }, true],
    [{ allOf: [{}, { type: 'string' }] }, false],
    [{ allOf: [{}, { type: 'null' }] }, true],
    [{ const: null }, true],
    [{ const: 'a' }, false],
    [{ enum: ['a', null] }, true],
    [{ enum: ['a'] }, false]
  ]
  for (const [schema, expected] of takes)
    t.equal(takesNull(schema as TSchema), expected, JSON.stringify(schema))
  t.end()
})

/** What Fastify would be told of an answer. */
function replyOf(statusCode: number, headers: readonly string[] = []) {
  const told: unknown[] = []
  const answer = {
    statusCode,
    raw: { destroyed: false },
    hasHeader: (name: string) => headers.includes(name),
    send: (value?: unknown) => {
      told.push(['send', value])
      return answer
    },
    type: (type: string) => {
      told.push(['type', type])
      return answer
    },
    serialize: (value: unknown) => JSON.stringify(value)
  }
  return { answer: answer as unknown as FastifyReply, told }
}

test('an answer is as its schema declares it, and nothing where nothing is declared', async t => {
  const record = {
    schema: { response: { 200: Type.String(), 201: Type.Union([Type.String(), Type.Null()]), 204: null } }
  } as unknown as RouteRecord
  const after = (status: number, value: unknown, headers?: readonly string[]) => {
    const { answer, told } = replyOf(status, headers)
    const result = answerValue(value, answer, record, text => answer.send(text))
    return { result: result === answer ? 'reply' : result, told }
  }
  t.same(after(204, { a: 1 }), { result: 'reply', told: [['send', undefined]] })
  t.same(after(202, undefined), { result: 'reply', told: [['send', undefined]] })
  t.same(after(202, 'text'), { result: 'text', told: [] }, 'what is not declared goes as it is')
  t.throws(() => after(200, undefined), /the answer 200 is undefined/)
  t.throws(() => after(200, null), /the answer 200 is null/)
  const json = ['type', 'application/json; charset=utf-8']
  t.same(after(201, null), { result: 'reply', told: [json, ['send', 'null']] })
  t.same(after(200, { a: 1 }), { result: 'reply', told: [json, ['send', '{"a":1}']] })
  t.same(after(200, 'text'), { result: 'reply', told: [json, ['send', '"text"']] })
  t.same(
    after(200, 'text', ['content-type']),
    { result: 'reply', told: [['send', 'text']] },
    'a document of its own type'
  )
  for (const value of [Buffer.from('a'), new Response(''), new Readable(), new ReadableStream()])
    t.equal(after(200, value).result, 'reply', 'by its schema and not as it is')
  const items = Array.from({ length: 101 }, (_, at) => at)
  for (const status of [200, 202]) {
    const long = after(status, items)
    await long.result
    t.same(long.told, [json, ['send', JSON.stringify(items)]])
  }
  t.equal(after(200, items.slice(1)).result instanceof Promise, false, 'a hundred are written at once')
})

test('an error is answered as the problem that it is, in our words, or without details', t => {
  const internal = { status: 500, code: 'E_INTERNAL' }
  const own = new Problem(409, 'E_TAKEN', 'taken')
  t.equal(toProblem(own), own)
  const odd: unknown[] = [
    new Error('secret'),
    undefined,
    null,
    'text',
    new Problem(399, 'E', 'a'),
    new Problem(600, 'E', 'a'),
    new Problem(400.5, 'E', 'a'),
    new Problem(400, 1 as never, 'a'),
    new Problem(400, 'E', 'a', {}, { 'a b': '' }),
    new Problem(400, 'E', 'a', {}, { a: '\n' }),
    new Problem(400, 'E', 'a', { n: 1n } as never),
    { statusCode: 399 },
    { statusCode: 500 },
    new Proxy(
      {},
      {
        get() {
          throw new Error('a trap')
        }
      }
    )
  ]
  for (const error of odd) {
    const problem = toProblem(error)
    t.match(problem, internal)
    t.notMatch(problem.message, /secret|trap/)
  }
  for (const status of [400, 599]) t.equal(toProblem(new Problem(status, 'E', 'a')).status, status)
  t.match(toProblem({ code: 'FST_ERR_CTP_BODY_TOO_LARGE', statusCode: 413 }), {
    status: 413,
    code: 'E_BODY_TOO_LARGE'
  })
  for (const statusCode of [400, 499])
    t.match(toProblem({ statusCode, message: 'odd' }), {
      status: statusCode,
      code: 'E_REQUEST_INVALID',
      message: 'odd'
    })
  t.equal(toProblem({ statusCode: 400 }).message, 'the request is not valid')
  t.end()
})
