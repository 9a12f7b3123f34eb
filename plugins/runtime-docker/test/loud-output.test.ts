import { Readable } from 'node:stream'
import { test } from 'tap'
import { jsonLines, OutputLines } from '../output-lines.js'

/** Counts what happens in each turn of the event loop, until `stop`. */
function turnByTurn<T>() {
  const turns: T[][] = [[]]
  let isOver = false
  const next = (): void => {
    if (isOver) return
    turns.push([])
    setImmediate(next)
  }
  setImmediate(next)
  return {
    note: (what: T): void => {
      turns.at(-1)?.push(what)
    },
    stop(): readonly T[][] {
      isOver = true
      return turns
    }
  }
}

function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

const most = (turns: readonly unknown[][]): number => Math.max(...turns.map(({ length }) => length))

/** All of it is there before the first of it is read. */
const stream = (events: number): Readable =>
  Readable.from(
    Array.from({ length: events }, () => Buffer.from('{"stream":"x"}\n')),
    { objectMode: false }
  )

test('events of the engine that have all come are read in turns', async t => {
  const seen = turnByTurn<number>()
  let n = 0
  for await (const _ of jsonLines(stream(300))) {
    seen.note(n++)
    work(1)
  }
  const turns = seen.stop()
  t.equal(n, 300)
  t.ok(most(turns) <= 11, `${most(turns)} in one turn of the event loop, of which each takes a millisecond`)
})

test('readers of several streams share the turns: no more is read in one of them than of one stream', async t => {
  const seen = turnByTurn<number>()
  let isWarm = false
  await Promise.all(
    Array.from({ length: 5 }, async (_, reader) => {
      let n = 0
      for await (const _ of jsonLines(stream(60))) {
        // The first ones come before anybody has had a turn.
        if (isWarm) seen.note(reader)
        work(1)
        if (++n === 30) isWarm = true
      }
    })
  )
  const turns = seen.stop().map(readers => new Set(readers).size)
  t.ok(Math.max(...turns) <= 2, `${Math.max(...turns)} readers in one turn`)
})

test('one event that holds very many lines is handed on in turns, and none is lost', async t => {
  const seen = turnByTurn<string>()
  const output = new OutputLines(line => {
    seen.note(line)
    work(0.02)
  })
  await output.writeInTurns('\n'.repeat(20_000))
  output.end()
  const turns = seen.stop()
  t.equal(turns.flat().length, 20_000)
  t.ok(most(turns) <= 5_000, `${most(turns)} lines in one turn`)
})
