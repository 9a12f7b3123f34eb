import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Type } from 'busbar/sdk'
import { test } from 'tap'
import { sendProblem, sendText, setCommonHeaders } from '../../core/http/answers.js'
import { refuseMissing } from '../../core/http/missing-value.js'
import { PlatformResponse, setDefaultHeader } from '../../core/http/platform-response.js'
import { toProblem } from '../../core/http/problems.js'

function exchange(headers: Record<string, string> = {}) {
  const request = new IncomingMessage(new Socket())
  request.headers = headers
  return { request, response: new PlatformResponse(request) }
}

/** The head as it would be written. */
const headOf = (response: PlatformResponse): string => (response as unknown as { _header: string })._header

test('usual headers are written with the head, and give way to those of the answer, however it is begun', t => {
  const heads: ReadonlyArray<(response: PlatformResponse) => void> = [
    response => response.writeHead(200, { 'cache-control': 'max-age=1', 'x-own': '1' }),
    response => response.writeHead(200, 'fine', { 'cache-control': 'max-age=1', 'x-own': '1' }),
    response => {
      response.setHeader('cache-control', 'max-age=1')
      response.setHeader('x-own', '1')
      response.writeHead(200)
    },
    response => {
      response.setHeader('cache-control', 'max-age=1')
      response.writeHead(200, { 'x-own': '1' })
    }
  ]
  for (const [at, begin] of heads.entries()) {
    const { response } = exchange()
    setCommonHeaders(response, 'r1', false)
    setDefaultHeader(response, 'x-twice', 'a')
    setDefaultHeader(response, 'x-twice', 'b')
    begin(response)
    const head = headOf(response)
    for (const line of [
      'x-content-type-options: nosniff',
      'x-frame-options: DENY',
      'referrer-policy: no-referrer',
      'cross-origin-resource-policy: same-origin',
      'x-request-id: r1',
      'cache-control: max-age=1',
      'x-own: 1',
      'x-twice: b'
    ])
      t.ok(head.includes(`${line}\r\n`), `${line} (${at})`)
    t.equal(head.match(/cache-control/g)?.length, 1, `one of each (${at})`)
    t.equal(head.match(/x-twice/g)?.length, 1)
    t.notMatch(head, /strict-transport-security/)
  }
  const { response } = exchange()
  setCommonHeaders(response, 'r1', true)
  response.writeHead(204)
  t.match(headOf(response), /strict-transport-security: max-age=31536000\r\n/)
  t.end()
})

test('a refusal is JSON with its headers, leaves the body unread, and comes once', t => {
  for (const send of [
    (response: PlatformResponse) => sendText(response, 404, 'no'),
    (response: PlatformResponse) =>
      sendProblem(response, {
        status: 404,
        code: 'E_NO',
        message: 'no',
        details: { at: 1 },
        headers: { 'retry-after': '2' }
      })
  ]) {
    const { request, response } = exchange({ 'content-length': '5' })
    send(response)
    t.equal(request.readableFlowing, true)
    t.equal(response.statusCode, 404)
    t.equal(response.writableEnded, true)
    send(response)
  }
  const { response } = exchange()
  sendProblem(response, { status: 503, code: 'E', message: 'später', headers: { 'retry-after': '2' } })
  t.match(headOf(response), /retry-after: 2\r\n/)
  const text = '{"error":"später","code":"E"}'
  t.match(headOf(response), `content-length: ${Buffer.byteLength(text)}\r\n`)
  t.end()
})

test('each fault that fastify finds has its status', t => {
  const statuses = {
    FST_ERR_CTP_BODY_TOO_LARGE: 413,
    FST_ERR_CTP_INVALID_MEDIA_TYPE: 415,
    FST_ERR_CTP_EMPTY_JSON_BODY: 400,
    FST_ERR_CTP_INVALID_JSON_BODY: 400,
    FST_ERR_CTP_INVALID_CONTENT_LENGTH: 400
  }
  for (const [code, status] of Object.entries(statuses)) t.equal(toProblem({ code }).status, status, code)
  t.end()
})

test('a value that is missing in an answer is named by its place', t => {
  const schema = Type.Object({
    id: Type.String(),
    note: Type.Optional(Type.String()),
    end: Type.Union([Type.String(), Type.Null()]),
    rows: Type.Array(Type.Object({ n: Type.Integer() }))
  })
  const fine = { id: 'a', end: null, rows: [{ n: 0 }] }
  refuseMissing(schema, fine)
  refuseMissing(schema, { ...fine, note: '' })
  refuseMissing({ type: 'array' } as never, [undefined])
  refuseMissing({ type: 'array', items: [{ type: 'string' }] } as never, [undefined])
  refuseMissing(Type.String(), 'text')
  refuseMissing({ properties: { a: {} } } as never, {})
  t.throws(() => refuseMissing(schema, undefined), /^the answer is undefined/)
  t.throws(() => refuseMissing(schema, null), { message: /^the answer is null/ })
  t.throws(() => refuseMissing(schema, { ...fine, id: undefined }), /the answer\/id is undefined/)
  t.throws(() => refuseMissing(schema, { ...fine, id: null }), { message: /the answer\/id is null/ })
  t.throws(() => refuseMissing(schema, { ...fine, note: null }), { message: /the answer\/note is null/ })
  t.throws(() => refuseMissing(schema, { ...fine, end: undefined }), { message: /\/end is undefined/ })
  t.throws(() => refuseMissing(schema, { ...fine, rows: [{ n: 1 }, { n: null }] }), {
    message: /the answer\/rows\/1\/n is null/
  })
  t.end()
})

test('the headers of an answer that begins with a plain list of its own are not stored one by one', t => {
  const { response } = exchange()
  setDefaultHeader(response, 'x-first', 'a')
  setDefaultHeader(response, 'x-first', 'b')
  response.writeHead(200, { 'x-own': '1', 'x-none': undefined, 'x-many': ['1', '2'] })
  t.same(response.getHeaderNames(), [])
  t.match(headOf(response), /x-first: b\r\nx-own: 1\r\nx-many: 1\r\nx-many: 2\r\n/)
  t.notMatch(headOf(response), /x-none|x-first: a/)
  const { response: listed } = exchange()
  setDefaultHeader(listed, 'x-first', 'a')
  listed.writeHead(200, ['x-own', '1'])
  t.match(headOf(listed), /x-first: a\r\nx-own: 1\r\n/)
  t.end()
})
