import { Writable } from 'node:stream'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { batchOf, Outbox } from '../../core/bus/outbox.js'
import { textFrame } from '../../core/bus/text-frame.js'
import { pingBytes } from '../../core/bus/ws-internals.js'

const open = 1
const closing = 2

/** An outbox before a socket that takes a write at a time, each as one text; `take` is the system's word that it has room again. */
function setUp() {
  const writes: string[] = []
  let takes: (() => void) | undefined
  let corks = 0
  const note = (chunks: readonly Buffer[], done: () => void): void => {
    writes.push(Buffer.concat(chunks).toString())
    takes = done
  }
  const socket = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, done) => note([chunk], done),
    writev: (chunks, done) =>
      note(
        chunks.map(({ chunk }) => chunk as Buffer),
        done
      )
  })
  const cork = socket.cork.bind(socket)
  socket.cork = () => {
    corks++
    cork()
  }
  const webSocket = { readyState: open, _socket: socket }
  let givenUp = 0
  const outbox = new Outbox(webSocket as unknown as WebSocket, () => givenUp++)
  return {
    outbox,
    writes,
    webSocket,
    corks: () => corks,
    givenUp: () => givenUp,
    send: (...texts: readonly string[]) => outbox.send([batchOf(texts.map(text => Buffer.from(text)))]),
    take: async () => {
      takes?.()
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}

test('several batches go to the system in one write, and one needs no holding back', t => {
  const { outbox, writes, corks, send } = setUp()
  send('a', 'b')
  t.same(writes, ['ab'])
  t.equal(corks(), 0)
  const many = setUp()
  many.outbox.send([batchOf([Buffer.from('a')]), batchOf([Buffer.from('b'), Buffer.from('c')])])
  t.same(many.writes, ['abc'])
  t.equal(many.corks(), 1)
  outbox.send([])
  t.equal(corks(), 0)
  t.end()
})

test('what a busy socket does not take waits, and goes in one write when it does', async t => {
  const { outbox, writes, send, take } = setUp()
  send('a')
  send('b', 'c')
  outbox.send([batchOf([Buffer.from('d')]), batchOf([Buffer.from('e')])])
  t.same(writes, ['a'])
  await take()
  t.same(writes, ['a', 'bcde'])
  await take()
  t.same(writes, ['a', 'bcde'], 'nothing has waited')
  send('f')
  t.same(writes, ['a', 'bcde', 'f'])
})

test('64 messages wait, and the tenth in a row that has no room is the last', async t => {
  const { writes, send, take, givenUp } = setUp()
  const sendMany = (count: number): void => {
    for (let n = 0; n < count; n++) send('x')
  }
  send('x')
  sendMany(64 + 9)
  await take()
  t.equal(writes.at(-1)?.length, 64)
  sendMany(64 + 9)
  t.equal(givenUp(), 0, 'the count has begun anew')
  sendMany(1)
  t.equal(givenUp(), 1)
  sendMany(1)
  t.equal(givenUp(), 1, 'it is told once')
})

test('of a state for which there is no room the latest is kept, and told behind what has waited', async t => {
  const { outbox, writes, send, take, givenUp } = setUp()
  const state = (topic: string, text: string): void => {
    const frame = Buffer.from(text)
    outbox.send([batchOf([frame], { topic, frames: new Set([frame]) })])
  }
  send('a')
  for (let n = 0; n < 64; n++) send('x')
  for (let n = 0; n < 100; n++) state('one', `<one ${n}>`)
  state('two', '<two>')
  t.equal(givenUp(), 0)
  await take()
  t.equal(writes.at(-1), `${'x'.repeat(64)}<one 99><two>`)
  send('b')
  await take()
  t.equal(writes.at(-1), 'b', 'once')
  for (let n = 0; n < 65; n++) send('x')
  for (let n = 0; n < 9; n++) state(`large ${n}`, 'y'.repeat(200 * 1024))
  await take()
  t.equal(writes.at(-1)?.length, 64 + 200 * 1024, 'not more than 256 KiB of them')
})

test('nothing is written to a socket that closes, or that has gone', async t => {
  const { outbox, writes, webSocket, send, take } = setUp()
  send('a')
  send('b')
  webSocket.readyState = closing
  await take()
  outbox.ping()
  t.same(writes, ['a'], 'what has waited neither')
  send('c')
  t.same(writes, ['a'])
  const gone = new Outbox({ readyState: closing, _socket: null } as unknown as WebSocket, () => {})
  gone.send([batchOf([Buffer.from('a')])])
  gone.ping()
})

test('messages and pings are whole frames of RFC 6455, not masked', t => {
  t.equal(textFrame('hi').toString('hex'), '81026869')
  t.equal(textFrame('').toString('hex'), '8100')
  t.equal(textFrame('x'.repeat(126)).subarray(0, 5).toString('hex'), '817e007e78')
  t.equal(pingBytes.toString('hex'), '8900')
  const { outbox, writes } = setUp()
  outbox.ping()
  t.same(writes, [pingBytes.toString()])
  t.end()
})
