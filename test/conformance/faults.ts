import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { until } from 'busbar/sdk/testing'
import type { Claim } from './claims.js'
import type { LiveClient } from './live-client.js'
import type { Credential, Stage } from './stage.js'

const said = 'x:speaker:said'
const other = 'x:speaker:other'
const mib = 1024 * 1024

/** What a process may take more at a time in which nothing of it may stay. */
const mostGrowth = 160 * mib

const residentBytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/** The memory of all processes together. */
const memoryOf = (stage: Stage): number =>
  stage.installation.processes.reduce((sum, { pid }) => sum + residentBytes(pid), 0)

/** A connection that has been upgraded, of which every byte is the test's. */
async function rawSocket(url: string, who: Credential): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const headers = Object.entries(who).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    `GET /api/ws HTTP/1.1\r\nHost: ${hostname}:${port}\r\n${headers.join('')}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
  )
  socket.on('error', () => {})
  const head = await new Promise<string>(resolve => {
    socket.once('data', data => {
      resolve(String(data))
    })
  })
  if (!head.startsWith('HTTP/1.1 101')) throw new Error(`not upgraded: ${head}`)
  return socket
}

/** A frame of a client: masked, as RFC 6455 demands, with a mask that changes nothing. */
function frame(opcode: number, payload: Buffer, fin = true): Buffer {
  const head = [(fin ? 0x80 : 0) | opcode]
  if (payload.length < 126) head.push(0x80 | payload.length)
  else if (payload.length < 65_536) head.push(0x80 | 126, payload.length >> 8, payload.length & 0xff)
  else {
    const length = Buffer.alloc(8)
    length.writeBigUInt64BE(BigInt(payload.length))
    head.push(0x80 | 127, ...length)
  }
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4), payload])
}

const isClosed = async (socket: Socket, what: string): Promise<void> => {
  await until(() => socket.closed || socket.readyState === 'closed', `${what}: the socket is closed`)
}

/** A client of somebody else who hears everything meanwhile, in order and without a gap. */
async function witnessOf(stage: Stage): Promise<LiveClient> {
  const witness = await stage.connect(stage.cast.stranger.session)
  await stage.hears(witness, other)
  return witness
}

/** Long messages, until somebody is disconnected for not reading; how many. */
async function sayUntilDropped(stage: Stage, url: string): Promise<number> {
  const dropped = async () => await stage.figure('busbar_bus_clients_dropped_total', url)
  const before = await dropped()
  let n = 0
  await until(
    async () => {
      await stage.sayNumbered(said, n, 30, 60_000)
      n += 30
      return (await dropped()) > before
    },
    'who does not read is disconnected',
    180_000
  )
  return n
}

/** Clients that do what they should not: others notice nothing, and memory stays bounded. */
export const faultClaims: readonly Claim[] = [
  {
    says: [
      'A slow WebSocket consumer is disconnected.',
      'A slow or dead client is terminated without a close handshake (10 s to answer a ping).'
    ],
    async holds(t, stage) {
      const witness = await witnessOf(stage)
      const url = stage.nextUrl
      const lazy = await stage.connect(stage.cast.owner.session)
      await stage.hears(lazy, said)
      const before = memoryOf(stage)
      lazy.socket.pause()
      const sent = await sayUntilDropped(stage, url)
      t.ok(memoryOf(stage) - before < mostGrowth, 'memory')
      t.ok(sent > 64, `${sent} messages`)
      lazy.socket.resume()
      t.equal((await lazy.closed()).code, 1006, 'no close frame comes')
      const numbers = lazy.on(said).flatMap(({ data }) => (data?.n === undefined ? [] : [data.n as number]))
      // What finds no room is left out, up to ten times in a row: there may be gaps before the end.
      t.same(
        numbers,
        numbers.toSorted((a, b) => a - b),
        'what came came in order'
      )
      t.equal(new Set(numbers).size, numbers.length, 'and once')
      await stage.stillHears(witness, other)
    }
  },
  {
    says: ['What breaks the protocol of WebSockets closes the socket that sends it, and no other.'],
    async holds(t, stage) {
      const { owner } = stage.cast
      const witness = await witnessOf(stage)
      const before = memoryOf(stage)
      const big = frame(1, Buffer.alloc(10 * mib, 'x'))
      const unmasked = Buffer.from([0x81, 2, 0x7b, 0x7d])
      const garbage: readonly (readonly [string, Buffer])[] = [
        ['bytes of no frame', randomBytes(4096)],
        ['a frame that is not masked', unmasked],
        ['a reserved opcode', frame(3, Buffer.from('{}'))],
        ['a reserved bit', Buffer.concat([Buffer.from([0xf1]), frame(1, Buffer.from('{}')).subarray(1)])],
        ['a ping of 200 bytes', frame(9, Buffer.alloc(200))],
        ['a continuation of nothing', frame(0, Buffer.from('{}'))],
        ['text that is not UTF-8', frame(1, Buffer.from([0xff, 0xfe, 0xfd]))],
        ['10 MiB in one frame', big],
        ['a length of 2^60', Buffer.concat([Buffer.from([0x81, 0xff, 0x10]), Buffer.alloc(11)])],
        [
          '10 MiB in many fragments',
          Buffer.concat([
            frame(1, Buffer.alloc(60_000, 'x'), false),
            ...Array.from({ length: 160 }, () => frame(0, Buffer.alloc(60_000, 'x'), false))
          ])
        ],
        ['a close in the middle', Buffer.concat([frame(8, Buffer.from([3, 232])), randomBytes(1000)])],
        ['HTTP', Buffer.from('GET /api/version HTTP/1.1\r\nHost: x\r\n\r\n')]
      ]
      for (const [what, bytes] of garbage) {
        const socket = await rawSocket(stage.nextUrl, owner.session)
        socket.resume()
        socket.write(bytes)
        await isClosed(socket, what)
      }
      // Who pings and does not read would have their answers kept.
      const pinging = await rawSocket(stage.nextUrl, owner.session)
      pinging.pause()
      const pings = Buffer.concat(Array.from({ length: 2_000 }, () => frame(9, Buffer.alloc(125))))
      for (let n = 0; n < 20 && !pinging.destroyed; n++) pinging.write(pings)
      await stage.stillHears(witness, other)
      pinging.destroy()
      t.ok(memoryOf(stage) - before < mostGrowth, 'memory')
      t.equal(witness.end, undefined)
    }
  },
  {
    says: [
      'Frames beyond what any client has a use for (2000 at once, then 50 a second) are read later: nothing is lost, and nobody else notices.'
    ],
    async holds(t, stage) {
      const witness = await witnessOf(stage)
      const flooding = await stage.connect(stage.cast.owner.session)
      await stage.hears(flooding, said)
      const before = memoryOf(stage)
      const total = 10_000
      for (let n = 0; n < total; n++) flooding.subscribe(`nowhere:${n}`)
      const answered = (): number => flooding.frames.filter(({ event }) => event === 'error').length
      await stage.waits(() => answered() >= 1_900, 'two thousand are answered')
      await stage.stillHears(witness, other)
      const soFar = answered()
      t.ok(soFar < total / 2, `${soFar} were read`)
      await stage.stillHears(flooding, said)
      t.ok(answered() < total / 2)
      await stage.waits(() => answered() > soFar, 'more are read in time')
      const refused = flooding.frames.filter(({ event }) => event === 'error').map(({ channel }) => channel)
      t.equal(new Set(refused).size, refused.length, 'each is answered once')
      t.equal(flooding.end, undefined)
      t.ok(memoryOf(stage) - before < mostGrowth, 'memory')
      await flooding.close()
    }
  },
  {
    says: [
      'Five thousand connections that say nothing, or half of a request, hold up nobody who is connected, and end soon enough for others.'
    ],
    async holds(t, stage) {
      const witness = await witnessOf(stage)
      const before = memoryOf(stage)
      const { hostname, port } = new URL(stage.nextUrl)
      const half = `GET /api/ws HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
      const idle: Socket[] = []
      t.teardown(() => {
        for (const socket of idle) socket.destroy()
      })
      for (let n = 0; n < 5_000; n++) {
        // Of as many addresses as it takes, as one address has few connections.
        const socket = connect({
          host: hostname,
          port: Number(port),
          localAddress: `127.0.1.${1 + (n % 20)}`
        })
        socket.resume().on('error', () => {})
        if (n % 2 === 0) socket.write(half)
        idle.push(socket)
        if (n % 500 === 499 && n < 4_000) await stage.stillHears(witness, other)
      }
      await stage.waits(
        () => !idle.some(({ readyState }) => readyState === 'opening'),
        'all have been taken or refused'
      )
      await witness.drained()
      const open = idle.filter(({ readyState }) => readyState === 'open').length
      t.ok(open >= 4_000, `${open} are open`)
      t.ok(memoryOf(stage) - before < mostGrowth, `${(memoryOf(stage) - before) / mib} MiB for all`)
      const isOpen = ({ readyState }: Socket): boolean => readyState === 'open'
      await until(() => idle.filter(isOpen).length < 1_000, 'who says nothing is cut off', 90_000)
      await until(
        async () => (await stage.act({}, 'GET', '/api/version').catch(() => undefined))?.status === 200,
        'others are let in again'
      )
      await stage.stillHears(witness, other)
    }
  },
  {
    says: ['Who reads a byte now and then holds up nobody.'],
    async holds(t, stage) {
      const { owner } = stage.cast
      const witness = await witnessOf(stage)
      const before = memoryOf(stage)
      // Within the cap: twenty of a user.
      const idle: Socket[] = []
      for (let n = 0; n < 18; n++) idle.push(await rawSocket(stage.nextUrl, owner.session))
      for (const socket of idle) {
        socket.write(frame(1, Buffer.from(JSON.stringify({ action: 'subscribe', channel: said }))))
        socket.pause()
      }
      // A byte at a time.
      const reading = setInterval(() => {
        for (const socket of idle) socket.read(1)
      }, 50)
      t.teardown(() => {
        clearInterval(reading)
        for (const socket of idle) socket.destroy()
      })
      for (let n = 0; n < 100; n += 20) {
        await stage.sayNumbered(said, n, 20, 60_000)
        await stage.stillHears(witness, other)
      }
      t.ok(memoryOf(stage) - before < 18 * 64 * 60_000 + mostGrowth, 'at most 64 messages are kept of each')
    }
  }
]

/** Of one process: what comes from another one comes in more than one turn. */
export const outboxClaims: readonly Claim[] = [
  {
    says: [
      'WebSocket outbound buffer: 64 messages per connection; overflowing it ten times in a row drops the client'
    ],
    async holds(t, stage) {
      const url = stage.nextUrl
      const lazy = await stage.connect(stage.cast.owner.session)
      await stage.hears(lazy, said)
      const missed = async () => await stage.figure('busbar_bus_client_messages_dropped_total', url)
      const given = async () => await stage.figure('busbar_bus_clients_dropped_total', url)
      const published = async () => await stage.figure('busbar_bus_messages_total', url)
      const [missedBefore, givenBefore] = [await missed(), await given()]
      let n = 0
      const say = async (count: number): Promise<void> => {
        const wanted = (await published()) + count
        await stage.sayNumbered(said, n, count, 60_000)
        n += count
        await stage.waits(async () => (await published()) >= wanted, 'they are published')
      }
      for (const round of [1, 2]) {
        lazy.socket.pause()
        // In one turn, and more than the system takes for a client that does not read.
        await say(200)
        await say(64)
        t.equal(await missed(), missedBefore + 9 * (round - 1), '64 are kept')
        await say(9)
        t.equal(await missed(), missedBefore + 9 * round, 'nine are dropped')
        lazy.socket.resume()
        const last = n - 10
        await lazy.next(({ data }) => data?.n === last, 'what was kept')
      }
      t.equal(await given(), givenBefore, 'never ten in a row')
      const come = lazy.on(said).flatMap(({ data }) => (data?.n === undefined ? [] : [data.n as number]))
      t.same(come, [
        ...Array.from({ length: 264 }, (_, at) => at),
        ...Array.from({ length: 264 }, (_, at) => 273 + at)
      ])
      lazy.socket.pause()
      await say(200)
      await say(64)
      await say(9)
      t.equal(await given(), givenBefore)
      await say(1)
      t.equal(await given(), givenBefore + 1, 'the tenth in a row')
      lazy.socket.resume()
      await lazy.closed()
    }
  }
]
