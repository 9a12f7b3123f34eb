/** What clients of a raw socket may send, as bytes in latin1: mostly HTTP, with what breaks parsers and forwarders. */
import fc from 'fast-check'

/** Bytes for one connection, in the pieces in which they are written. */
export interface Conversation {
  readonly surface: 'platform' | 'address'
  readonly pieces: readonly string[]
  /** `end`: the client closes its side and reads on; `reset`: it goes away. */
  readonly end: 'end' | 'reset'
}

const byte = fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code))
const bytes = (maxLength: number): fc.Arbitrary<string> => fc.string({ unit: byte, maxLength })
const mostly = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>, weight = 12): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd })

const methods = mostly(
  fc.constantFrom('GET', 'GET', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'DELETE', 'PATCH'),
  fc.constantFrom('CONNECT', 'TRACE', 'PRI', 'BREW', 'get', '', 'G\0T', 'GET GET', 'A'.repeat(300))
)
const numbered = fc.nat(40).map(number => `/answer/${number}`)
const platformTargets = fc.constantFrom(
  '/healthz',
  '/api/version',
  '/api/ws',
  '/api/ws',
  '/api/ws/echo',
  '/api/ws/echo',
  '/api/ws/%zz',
  '/api/auth/login',
  '/api/auth/setup',
  '/api/nothing',
  '/api/x/a/b'
)
const oddTargets = fc.oneof(
  fc.constantFrom(
    '*',
    'http://h.example/p',
    'http://',
    'http:///p',
    'http://u:p@h/',
    'http://[::1',
    'https://h/',
    'ftp://h',
    '//h/p',
    '/%00',
    '/%zz',
    '/\u00e9\u00ff',
    '/a b',
    '/\0',
    '/#f',
    '/?#/',
    'h:80',
    '..',
    '',
    '/..//%2e%2e/',
    `/${'a'.repeat(20_000)}`,
    `/${'a'.repeat(40_000)}`
  ),
  bytes(30)
)
const versions = mostly(
  fc.constant('HTTP/1.1'),
  fc.constantFrom('HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/9.9', 'http/1.1', 'HTTP/1.1 ', '', 'HTTP/1.11')
)

/** Headers that servers and forwarders act on, with what is said in them. */
const known: Readonly<Record<string, readonly string[]>> = {
  Host: ['a', 'b.example:80', '', 'a b', '[::1]:1', 'a, b', 'user@a', 'a:99999999', '\u00e9', '127.0.0.2'],
  Connection: [
    'close',
    'keep-alive',
    'Upgrade',
    'upgrade, close',
    'Host',
    'Content-Length',
    'Authorization, Cookie',
    'X-Forwarded-For',
    'Transfer-Encoding',
    ',',
    ', ,x',
    'keep-alive, Upgrade, TE'
  ],
  Upgrade: [
    'websocket',
    'h2c',
    'H2C, h2c',
    'h2c, websocket',
    'WebSocket',
    'TLS/1.0',
    '',
    'x'.repeat(2000),
    'a\u00ff'
  ],
  'Transfer-Encoding': [
    'chunked',
    'Chunked',
    'gzip, chunked',
    'chunked, identity',
    'identity',
    ' chunked ',
    'x',
    'chunked\t',
    '"chunked"',
    'chunked;a=b',
    ''
  ],
  'Content-Length': [
    '0',
    '5',
    '00',
    '+5',
    '-1',
    '5, 5',
    '5,6',
    '0x5',
    '1e1',
    ' 5',
    '5 ',
    '99999999999999999999',
    '',
    '4294967301'
  ],
  Trailer: ['X', 'Content-Length', '', 'Host, X'],
  TE: ['trailers', 'chunked;q=0', 'x'],
  'Keep-Alive': ['timeout=5', 'x'],
  'Proxy-Connection': ['keep-alive'],
  'Proxy-Authorization': ['Basic x'],
  Proxy: ['http://127.0.0.1:1'],
  'HTTP2-Settings': ['AAMAAABk'],
  Expect: ['100-continue', '100-Continue', 'miracles', ''],
  Cookie: ['token=busbar_ses_x', 'csrf_token=a; b=%zz', ';;=;', '=x'],
  Authorization: ['Bearer x', 'Bearer busbar_pat_x', 'Basic', '\u00ff'],
  'Content-Type': ['application/json', 'text/plain', 'x/y; a="', '', 'application/json; charset=x'],
  Origin: ['http://evil', 'null', 'x', ''],
  Forwarded: ['for=1'],
  'X-Forwarded-For': ['1.2.3.4', 'x, y'],
  'X-Forwarded-Proto': ['https'],
  'Sec-WebSocket-Key': ['dGhlIHNhbXBsZSBub25jZQ==', 'x', ''],
  'Sec-WebSocket-Version': ['13', '8', 'x'],
  'Sec-WebSocket-Protocol': ['a', ',', 'a, a', '"'],
  'Sec-WebSocket-Extensions': ['permessage-deflate', 'permessage-deflate; x=', ';', 'a;'.repeat(200)],
  Range: ['bytes=0-'],
  'Idempotency-Key': ['k', ''],
  __proto__: ['x'],
  constructor: ['x'],
  'X-A': ['b', 'a'.repeat(3000)],
  'Access-Control-Request-Method': ['GET']
}
const names = Object.keys(known)
const eol = mostly(
  fc.constant('\r\n'),
  fc.constantFrom('\n', '\r', '\r\r\n', '\r\n ', '\r\n\t', '\0\r\n'),
  60
)
const separators = mostly(fc.constant(': '), fc.constantFrom(':', ' : ', ':\t', '', ' ', ':\0', ':\r\n '), 40)
const spelled = (name: string): fc.Arbitrary<string> =>
  mostly(
    fc.constant(name),
    fc.constantFrom(
      name.toLowerCase(),
      name.toUpperCase(),
      ` ${name}`,
      `${name} `,
      `${name}\0`,
      name.replace('-', '_')
    ),
    8
  )

const header: fc.Arbitrary<string> = fc
  .oneof(
    {
      weight: 12,
      arbitrary: fc
        .constantFrom(...names)
        .chain(name =>
          fc.tuple(
            spelled(name),
            separators,
            mostly(fc.constantFrom(...(known[name] ?? [''])), bytes(20)),
            eol
          )
        )
    },
    { weight: 1, arbitrary: fc.tuple(bytes(12), separators, bytes(40), eol) }
  )
  .map(parts => parts.join(''))
const headers = mostly(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant('') },
    { weight: 2, arbitrary: fc.array(header, { maxLength: 4 }).map(lines => lines.join('')) }
  ),
  fc.tuple(header, fc.constantFrom(50, 300, 2500)).map(([line, times]) => line.slice(0, 200).repeat(times)),
  60
)

const hidden = 'GET /hidden HTTP/1.1\r\nHost: hidden\r\n\r\n'
const chunk = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      '5\r\nhello\r\n',
      '1;a=b\r\nx\r\n',
      'A\r\n0123456789\r\n',
      `${hidden.length.toString(16)}\r\n${hidden}\r\n`
    )
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '5\nhello\n',
      '0x5\r\nhello\r\n',
      '-1\r\n\r\n',
      ' 5\r\nhello\r\n',
      '5 \r\nhello\r\n',
      '5\r\nhelloX\r\n',
      'FFFFFFFFFFFFFFFFF\r\n',
      '\r\n',
      '5;\n\r\nhello\r\n',
      '5\r\nhell',
      `5;${'x'.repeat(20_000)}\r\nhello\r\n`,
      '0\r\n\r\n'
    )
  }
)
const trailers = mostly(
  fc.constantFrom('', '', 'X: y\r\n'),
  fc.constantFrom(
    'Content-Length: 5\r\n',
    'Host: evil\r\n',
    'Transfer-Encoding: chunked\r\n',
    ' x\r\n',
    'x\r\n',
    `X: ${'y'.repeat(40_000)}\r\n`
  ),
  6
)

/** Headers and bytes of a body that belong together, or nearly. */
const body: fc.Arbitrary<readonly [headers: string, bytes: string]> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(['', ''] as const) },
  {
    weight: 3,
    arbitrary: fc
      .oneof(bytes(40), fc.constantFrom(hidden, '{"email":1}', 'x'.repeat(70_000)))
      .map(text => [`Content-Length: ${text.length}\r\n`, text] as const)
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.array(chunk, { maxLength: 4 }), trailers)
      .map(
        ([chunks, after]) =>
          ['Transfer-Encoding: chunked\r\n', `${chunks.join('')}0\r\n${after}\r\n`] as const
      )
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.nat(80), bytes(40))
      .map(([length, text]) => [`Content-Length: ${length}\r\n`, text] as const)
  },
  {
    weight: 1,
    arbitrary: fc.constant([
      'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
      `0\r\n\r\n${hidden}`
    ] as const)
  }
)

/** The opening of frames as a client may send them after a handshake, whole and broken. */
const frames = fc.oneof(
  fc.constantFrom(
    '\x81\x85\0\0\0\0hello',
    '\x88\x80\0\0\0\0',
    '\x89\x80\0\0\0\0',
    '\x81\x05hello',
    '\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0',
    '\xf1\x80\0\0\0\0',
    '\x83\x80\0\0\0\0',
    '\x80\x81\0\0\0\0x',
    '\x81\xfe\xff\xff\0\0\0\0',
    '\x88\x82\0\0\0\0\0\x01',
    '\x81\x82\0\0\0\0\xff\xfe'
  ),
  bytes(60)
)
const wants = [
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
]

function request(surface: Conversation['surface'], credential: string): fc.Arbitrary<string> {
  const targets = mostly(surface === 'platform' ? platformTargets : numbered, oddTargets)
  const hosts = mostly(
    fc.constant('Host: a\r\n'),
    fc.constantFrom('', 'Host: a\r\nHost: b\r\n', 'Host:\r\n'),
    15
  )
  const upgrades = fc.oneof(
    { weight: 3, arbitrary: fc.constant('') },
    { weight: 2, arbitrary: fc.constantFrom(...wants) }
  )
  const credentials = surface === 'platform' ? fc.constantFrom('', `${credential}\r\n`) : fc.constant('')
  return fc
    .record({
      method: methods,
      target: targets,
      version: versions,
      host: hosts,
      upgrade: upgrades,
      before: headers,
      after: headers,
      credential: credentials,
      body,
      frames: fc.array(frames, { maxLength: 3 })
    })
    .map(parts => {
      const wantsUpgrade = parts.upgrade !== ''
      const [framing, text] = parts.body
      const method = wantsUpgrade && parts.method !== '' ? 'GET' : parts.method
      // A body beside an upgrade is refused at once, and would hide what comes after the handshake.
      const payload = wantsUpgrade ? parts.frames.join('') : text
      return `${method} ${parts.target} ${parts.version}\r\n${parts.host}${parts.before}${wantsUpgrade ? parts.upgrade : framing}${parts.credential}${parts.after}\r\n${payload}`
    })
}

/** Small damage at any place. */
function damaged(text: string): fc.Arbitrary<string> {
  const at = fc.nat(Math.max(0, text.length - 1))
  return fc.oneof(
    { weight: 20, arbitrary: fc.constant(text) },
    { weight: 1, arbitrary: at.map(end => text.slice(0, end)) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(at, byte)
        .map(([place, other]) => text.slice(0, place) + other + text.slice(place + 1))
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(at, fc.constantFrom('\0', '\r', '\n', '\r\n', ' ', ':', '\r\n\r\n'))
        .map(([place, added]) => text.slice(0, place) + added + text.slice(place))
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(at, fc.nat(60))
        .map(([place, length]) => text.slice(0, place + length) + text.slice(place))
    }
  )
}

/** Cut where a parser may have read half of something. */
function inPieces(text: string): fc.Arbitrary<readonly string[]> {
  const cuts = fc.array(fc.nat(text.length), { maxLength: 6 }).map(places => {
    const sorted = [0, ...places.sort((a, b) => a - b), text.length]
    return sorted
      .slice(1)
      .map((end, index) => text.slice(sorted[index], end))
      .filter(piece => piece !== '')
  })
  return fc.oneof({ weight: 3, arbitrary: fc.constant([text]) }, { weight: 2, arbitrary: cuts })
}

/** `credential` is a header line by which the platform knows the sender. */
export function conversations(credential: string): fc.Arbitrary<Conversation> {
  return fc.constantFrom('address' as const, 'address' as const, 'platform' as const).chain(surface =>
    fc
      .array(request(surface, credential), { minLength: 1, maxLength: 4 })
      .chain(requests => damaged(requests.join('')))
      .chain(inPieces)
      .chain(pieces =>
        mostly(fc.constant('end' as const), fc.constant('reset' as const), 6).map(end => ({
          surface,
          pieces,
          end
        }))
      )
  )
}
