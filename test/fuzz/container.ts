/** The container behind the address: it reads by the letter of RFC 9112 and remembers what it should not have been sent. */
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface Container {
  readonly port: number
  /** What was wrong with what arrived, since it was last asked. */
  takeFaults(): string[]
  readonly requests: number
  close(): Promise<void>
}

const forbidden =
  /^(connection|keep-alive|te|trailer|upgrade|http2-settings|proxy|proxy-.*|forwarded|x-real-ip)$/
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Answers by the number in the path, from the honest to what no client should believe. */
const answers: ReadonlyArray<string | null> = [
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: y\r\nSet-Cookie: token=a\r\n\r\n',
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n',
  'HTTP/1.1 404 \u00e9\r\nContent-Length: 0\r\nSet-Cookie: token=a\r\nSet-Cookie: b=c\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  null,
  'nonsense\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbytes',
  'HTTP/1.1 200 OK\r\nTrailer: X\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 099 x\r\n\r\n',
  'HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 200 \x01\x7f\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nX: \x7f\x80\xff\r\nContent-Length: 0\r\n\r\n',
  `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(2500)}Content-Length: 0\r\n\r\n`,
  'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX\x7f: \x01\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: \x7f\xff\r\n\r\n',
  'HTTP/1.0 200 OK\r\n\r\nuntil the end',
  'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end',
  'HTTP/1.1 205 Reset\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: y\r\n\r\n',
  'HTTP/1.1 101 \x01\r\nConnection: Upgrade\r\nUpgrade: a\x7f\xff\r\nSet-Cookie: token=a\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen'
]
const closing = /until the end|half|nonsense|stolen|Content-Length: 3|09?9 x/

export async function startContainer(): Promise<Container> {
  let faults: string[] = []
  let requests = 0
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
    })
    socket.on('error', () => {})
    let unread = ''
    let isTunnel = false
    let isAnswering = false
    socket.on('data', chunk => {
      if (isTunnel) {
        if (!socket.destroyed) socket.write(chunk)
        return
      }
      unread += chunk.toString('latin1')
      look()
    })
    const fault = (what: string): void => {
      faults.push(`${what}: ${JSON.stringify(unread.slice(0, 600))}`)
      socket.destroy()
    }
    const look = (): void => {
      if (isAnswering || unread === '') return
      const message = readMessage(unread)
      if (message === undefined) return
      if (typeof message === 'string') {
        fault(message)
        return
      }
      requests += 1
      isAnswering = true
      const rest = (): string => unread.slice(message.length)
      // A client that waits for this answer sends nothing before it: more would be a second request out of one.
      setTimeout(() => {
        if (socket.destroyed) return
        if (rest() !== '')
          return fault(`more than the request arrived before its answer (${rest().slice(0, 80)})`)
        unread = ''
        isAnswering = false
        answer(message)
      }, 2)
    }
    const answer = ({ method, path, isUpgrade }: Message): void => {
      const number = Number(/\/answer\/(\d+)$/.exec(path)?.[1] ?? 0)
      if (isUpgrade && number % 3 !== 2) {
        isTunnel = true
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello'
        )
        return
      }
      const text = answers[number % answers.length]
      if (text === null || text === undefined) {
        socket.destroy()
        return
      }
      const bytes = method === 'HEAD' ? headsOf(text) : text
      if (closing.test(text)) socket.end(bytes, 'latin1')
      else socket.write(bytes, 'latin1')
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    takeFaults: () => {
      const taken = faults
      faults = []
      return taken
    },
    get requests() {
      return requests
    },
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    }
  }
}

/** Without the body of the final answer. */
function headsOf(text: string): string {
  let end = 0
  do end = text.indexOf('\r\n\r\n', end) + 4
  while (/^HTTP\/1\.1 10[03] /.test(text.slice(0, end).split('\r\n\r\n').at(-2) ?? ''))
  return text.slice(0, end)
}

interface Message {
  readonly method: string
  readonly path: string
  readonly isUpgrade: boolean
  readonly length: number
}

/** One whole request at the start of `text`; undefined while more is to come, or what is wrong with it. */
function readMessage(text: string): Message | string | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return text.length > 200_000 ? 'a head without an end' : undefined
  const [line = '', ...lines] = text.slice(0, end).split('\r\n')
  const [, method, path] = /^([A-Z-]+) (\S+) HTTP\/1\.1$/.exec(line) ?? []
  if (method === undefined || path === undefined || !(path.startsWith('/') || path === '*'))
    return 'its first line is not that of a request'
  const headers = new Map<string, string[]>()
  for (const one of lines) {
    const colon = one.indexOf(':')
    const name = one.slice(0, colon)
    const value = one.slice(colon + 1).trim()
    if (!token.test(name)) return `the header name ${JSON.stringify(name)}`
    if (/[\0-\x08\x0a-\x1f\x7f]/.test(value)) return `the value of ${name}`
    headers.set(name.toLowerCase(), [...(headers.get(name.toLowerCase()) ?? []), value])
  }
  const isUpgrade = headers.has('upgrade')
  for (const name of headers.keys()) {
    if (forbidden.test(name) && !(name === 'connection' || (name === 'upgrade' && isUpgrade)))
      return `the header ${name} reached it`
  }
  const connection = headers.get('connection') ?? []
  if (connection.length > 1 || !/^(keep-alive|close|Upgrade)?$/.test(connection[0] ?? ''))
    return `Connection: ${connection.join(' / ')}`
  if (isUpgrade && (connection[0] !== 'Upgrade' || /h2c/i.test(String(headers.get('upgrade')))))
    return 'an upgrade that nobody asked for'
  for (const name of ['host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'])
    if (headers.get(name)?.length !== 1) return `${headers.get(name)?.length ?? 0} of ${name}`
  const lengths = headers.get('content-length') ?? []
  const codings = headers.get('transfer-encoding') ?? []
  if (lengths.length + codings.length > 1) return 'it is framed twice'
  if (isUpgrade && (codings.length > 0 || Number(lengths[0] ?? 0) > 0)) return 'an upgrade with a body'
  const at = end + 4
  if (codings.length > 0) {
    if (codings[0] !== 'chunked') return `Transfer-Encoding: ${codings.join()}`
    const length = chunkedLength(text, at)
    return length === undefined || typeof length === 'string' ? length : { method, path, isUpgrade, length }
  }
  if (lengths[0] !== undefined && !/^\d+$/.test(lengths[0])) return `Content-Length: ${lengths[0]}`
  const length = at + Number(lengths[0] ?? 0)
  return text.length < length ? undefined : { method, path, isUpgrade, length }
}

function chunkedLength(text: string, from: number): number | string | undefined {
  for (let at = from; ; ) {
    const end = text.indexOf('\r\n', at)
    if (end < 0) return undefined
    const size = text.slice(at, end)
    if (!/^[0-9a-f]+$/i.test(size)) return `the chunk size ${JSON.stringify(size.slice(0, 40))}`
    const next = end + 2 + parseInt(size, 16)
    if (text.length < next + 2) return undefined
    if (text.slice(next, next + 2) !== '\r\n') return 'a chunk that is longer than it says'
    if (parseInt(size, 16) === 0) return next + 2
    at = next + 2
  }
}
