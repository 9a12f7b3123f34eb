import type { LogBatch } from 'busbar/api/containers'
import type { Log } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { CollectStore, KnownContainer } from '../collect/collect-store.js'
import { type KeptLines, LogWriter } from '../collect/log-writer.js'

const container = (key: number): KnownContainer => ({
  key,
  containerId: `c${key}`,
  deploymentId: undefined,
  sourceId: `s${key}`,
  sourceType: 'application',
  place: undefined,
  endedRun: undefined
})

const batch = (text: string, place: string): LogBatch => ({
  lines: [{ stream: 'stdout', time: '2026-01-01T00:00:00.000000000Z', text }],
  place
})

/** A writer on a store that keeps everything, and listeners who are told a container's lines when they are let. */
function startWriter(t: Test) {
  const places: string[] = []
  const untold: Array<{ readonly kept: KeptLines; readonly told: () => void }> = []
  const store: Pick<CollectStore, 'write' | 'turn'> = {
    turn: async epoch => ({ epoch, nextOrdinal: 0 }),
    write: async ({ nextOrdinal }, kept) => {
      places.push(...kept.map(({ place }) => place))
      return { first: nextOrdinal, keys: kept.map(({ key }) => key), sources: [] }
    }
  }
  const writer = new LogWriter(
    {
      store: store as CollectStore,
      clock: testClock(),
      log: { warn: () => {}, debug: () => {} } as unknown as Log,
      clean: text => text,
      onKept: async kept => {
        await new Promise<void>(told => {
          untold.push({ kept, told })
        })
      },
      onGrown: async () => {}
    },
    { epoch: 1, nextOrdinal: 0 }
  )
  const stop = new AbortController()
  const running = writer.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    writer.close()
    await running
  })
  return { writer, places, untold }
}

test('while the lines of one container are told, others are kept, and then what else it has written', async t => {
  const { writer, places, untold } = startWriter(t)
  const [loud, quiet] = [container(1), container(2)]
  await writer.add(loud, batch('a', 'loud 1'))
  await until(() => untold.length === 1, 'the first line is told')
  await writer.add(loud, batch('b', 'loud 2'))
  await writer.add(quiet, batch('c', 'quiet 1'))
  await writer.kept(quiet)
  t.same(places, ['loud 1', 'quiet 1'])
  // What it writes meanwhile waits, and no more than it has room for.
  let isTaken = false
  const adding = writer.add(loud, batch('x'.repeat(3 * 1024 * 1024), 'loud 3')).then(() => {
    isTaken = true
  })
  await writer.add(container(3), batch('d', 'third 1'))
  await writer.kept(container(3))
  await until(() => places.includes('third 1'), 'one more is kept')
  t.notOk(isTaken)
  t.same(places, ['loud 1', 'quiet 1', 'third 1'])
  untold[0]?.told()
  await adding
  t.equal(places.at(-1), 'loud 3')
})

test('nothing is kept while more than 8 MiB of what has been kept is untold', async t => {
  const { writer, places, untold } = startWriter(t)
  const mebibyte = 'x'.repeat(1024 * 1024)
  for (let n = 0; n < 9; n++) await writer.add(container(n), batch(mebibyte, `of ${n}`))
  await until(() => untold.length >= 8, 'eight are told')
  await until(() => untold.length === 9 || places.length === 8, 'what has room')
  await writer.add(container(10), batch('a', 'the next'))
  await new Promise(resolve => setTimeout(resolve, 200))
  t.notOk(places.includes('the next'))
  for (const { told } of untold) told()
  await until(() => places.includes('the next'), 'the next')
})
