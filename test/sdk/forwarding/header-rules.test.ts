import type { IncomingMessage } from 'node:http'
import { test } from 'tap'
import type { Head } from '../../../sdk/http1/forwarding/head.js'
import {
  requestHeaders,
  responseHeaders,
  responseTrailers
} from '../../../sdk/http1/forwarding/header-rules.js'

/** As Node hands it over: `headers` in lower case, `rawHeaders` as they came. */
const message = (raw: ReadonlyArray<readonly [string, string]>, more: object = {}): IncomingMessage =>
  ({
    rawHeaders: raw.flat(),
    rawTrailers: raw.flat(),
    headers: Object.fromEntries(raw.map(([name, value]) => [name.toLowerCase(), value])),
    socket: { remoteAddress: '203.0.113.9' },
    ...more
  }) as unknown as IncomingMessage

const sent = (
  raw: ReadonlyArray<readonly [string, string]>,
  {
    method = 'GET',
    framing = 'none',
    requestId
  }: { method?: string; framing?: Head['framing']; requestId?: string } = {}
) => ({ ...requestHeaders(message(raw, { method }), { path: '/', host: 'my.host', framing }, {}, requestId) })

const own = {
  Host: 'my.host',
  'X-Forwarded-For': '203.0.113.9',
  'X-Forwarded-Proto': 'http',
  'X-Forwarded-Host': 'my.host'
}

test('what a client says of its origin, and what concerns its connection alone, reaches no container', async t => {
  for (const name of [
    'Forwarded',
    'X-Real-IP',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'X-Forwarded-Port',
    'x_forwarded_for',
    'Proxy',
    'Proxy-Authorization',
    'Proxy-Connection',
    'Connection',
    'Keep-Alive',
    'TE',
    'Transfer-Encoding',
    'Upgrade',
    'HTTP2-Settings',
    'Trailer',
    'Host'
  ])
    t.same(sent([[name, 'of the client']]), own, name)
})

test('what `Connection` names goes, but for what is meant for the container', async t => {
  const named = [
    'X-Hop',
    'Host',
    'Authorization',
    'Cookie',
    'Content-Type',
    'Origin',
    'Cache-Control',
    'Expect'
  ]
  const headers = sent([
    ['Connection', `${named.slice(0, 4).join(', ')},`],
    ['connection', named.slice(4).join(' , ').toLowerCase()],
    ...named.slice(2).map(name => [name, 'a'] as const),
    ['X-Hop', 'a'],
    ['x-kept', 'a']
  ])
  t.same(headers, { ...own, ...Object.fromEntries(named.slice(2).map(name => [name, 'a'])), 'x-kept': 'a' })
})

test('a body is framed by one header: its coding, its length, or the length 0 where a method asks for one', async t => {
  const length = [['Content-Length', '5']] as const
  t.same(sent(length, { method: 'POST', framing: 'length' }), { ...own, 'Content-Length': '5' })
  t.same(sent(length, { method: 'POST', framing: 'chunked' }), { ...own, 'Transfer-Encoding': 'chunked' })
  for (const method of ['POST', 'PUT', 'PATCH'])
    t.same(sent([], { method }), { ...own, 'Content-Length': '0' })
  for (const method of ['GET', 'DELETE', 'OPTIONS']) t.same(sent([], { method }), own)
})

test('headers of one name are kept in their order and with the first spelling; a cookie that is none of ours stays', async t => {
  t.same(
    sent([
      ['X-Many', '1'],
      ['x-many', '2'],
      ['X-MANY', '3'],
      ['Cookie', 'token=busbar_ses_x'],
      ['cookie', 'a=1; token=busbar_ses_x']
    ]),
    { ...own, 'X-Many': ['1', '2', '3'], cookie: 'a=1' }
  )
})

test('an answer names trailers only where some can follow, and no length beside a coding', async t => {
  const answer = (coded: boolean, hasTrailers: boolean) => ({
    ...responseHeaders(
      message([
        ['Content-Length', '5'],
        ['Trailer', 'X'],
        ...(coded ? ([['Transfer-Encoding', 'chunked']] as const) : [])
      ]),
      hasTrailers,
      { ownHost: undefined }
    )
  })
  t.same(answer(true, true), { Trailer: 'X' })
  t.same(answer(true, false), {})
  t.same(answer(false, true), { 'Content-Length': '5' })
})

test('what follows a body neither frames it nor sets a cookie', async t => {
  t.same(
    {
      ...responseTrailers(
        message([
          ['Set-Cookie', 'token=x'],
          ['Content-Length', '9'],
          ['Host', 'a'],
          ['Trailer', 'X'],
          ['Transfer-Encoding', 'chunked'],
          ['X-Sum', '42']
        ])
      )
    },
    { 'X-Sum': '42' }
  )
})

test('a request that has an id gets it to the container, whatever the client has called it', async t => {
  for (const name of ['X-Request-Id', 'x-request-id', 'X_Request_Id']) {
    t.same(sent([[name, 'mine']], { requestId: 'ours' }), { ...own, 'X-Request-Id': 'ours' })
    t.same(
      sent([[name, 'mine']]),
      { ...own, [name]: 'mine' },
      'and without one that of the client is handed on'
    )
  }
  t.same(
    sent([['Connection', 'X-Request-Id']], { requestId: 'ours' }),
    { ...own, 'X-Request-Id': 'ours' },
    'nor can a client have it taken out'
  )
})
