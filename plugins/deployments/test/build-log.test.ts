import { type Bus, type Clock, cutMark, type Log, type Secrets } from 'busbar/sdk'
import { pino } from 'pino'
import { test } from 'tap'
import { type LogEntry, openBuildLog, readBuildLog } from '../records/build-log.js'
import type { DeploymentLogStore, LogChunk, LogCut, WrittenChunk } from '../records/deployment-log-store.js'

/** The log store in memory, with what went over the bus. */
function setUp() {
  let chunks: WrittenChunk[] = []
  let cut: LogCut = { lines: 0, bytes: 0 }
  const published: Array<{ event: string; data: LogEntry }> = []
  const store: Pick<DeploymentLogStore, 'chunks' | 'append' | 'read' | 'cut'> = {
    chunks: async (): Promise<LogChunk[]> => chunks,
    append: async (_, chunk, dropBelow, more) => {
      if (dropBelow !== undefined) chunks = chunks.filter(one => !one.is_tail || one.seq >= dropBelow)
      chunks.push(chunk)
      cut = { lines: cut.lines + more.lines, bytes: cut.bytes + more.bytes }
    },
    read: async () => chunks,
    cut: async () => cut
  }
  const bus: Pick<Bus, 'publish' | 'hasSubscribers'> = {
    hasSubscribers: () => true,
    publish: (_, event, data) => {
      published.push({ event, data: data as LogEntry })
    }
  }
  const cleaned: string[] = []
  const spent = { stamps: 0, cleaned: 0, cleanedCharacters: 0 }
  class CountedDate extends Date {
    override toISOString(): string {
      spent.stamps++
      return super.toISOString()
    }
  }
  const secrets: Pick<Secrets, 'clean'> = {
    clean(text) {
      spent.cleaned++
      if (text.length > 16_000) cleaned.push(text)
      spent.cleanedCharacters += text.length
      return text.replaceAll('s3cret', '[REDACTED]')
    }
  }
  const clock: Pick<Clock, 'now'> = { now: () => new CountedDate('2026-01-01T00:00:00.123Z') }
  // Only what a build log uses of them is there.
  const parts = {
    store: store as DeploymentLogStore,
    bus: bus as Bus,
    secrets: secrets as Secrets,
    clock: clock as Clock,
    log: pino({ level: 'silent' }) as Log
  }
  return {
    open: () => openBuildLog('d', parts),
    read: async () => (await readBuildLog(parts.store, 'd')) ?? '',
    published,
    spent,
    cleaned,
    chunkCount: () => chunks.length
  }
}

const parsed = (text: string): LogEntry[] =>
  text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))

test('lines are kept in order, without secrets, and published after they are kept', async t => {
  const { open, read, published } = setUp()
  const log = open()
  log.line({ level: 'info', msg: 'cloning' })
  log.line({ level: 'info', stream: 'stdout', msg: 'one\ntwo s3cret' })
  await log.close()
  t.same(parsed(await read()), [
    { ts: '2026-01-01T00:00:00.123Z', level: 'info', msg: 'cloning' },
    { ts: '2026-01-01T00:00:00.123Z', level: 'info', stream: 'stdout', msg: 'one' },
    { ts: '2026-01-01T00:00:00.123Z', level: 'info', stream: 'stdout', msg: 'two [REDACTED]' }
  ])
  t.same(
    published.map(({ event, data }) => [event, data.msg]),
    [
      ['log', 'cloning'],
      ['log', 'one'],
      ['log', 'two [REDACTED]']
    ]
  )
})

test('lines after the end of the channel go to the record alone', async t => {
  const { open, read, published } = setUp()
  const log = open()
  log.line({ level: 'info', msg: 'built' })
  await log.flush()
  log.endChannel()
  log.line({ level: 'info', msg: 'started' })
  await log.close()
  t.equal(published.length, 1)
  t.equal(parsed(await read()).length, 2)
})

test('a million lines leave the first and the last, at most 1 MiB, and a note of what was cut', async t => {
  const { open, read } = setUp()
  const log = open()
  for (let index = 0; index < 1_000_000; index += 1) {
    log.line({ level: 'info', stream: 'stdout', msg: `line ${index}` })
    if (index % 1000 === 0) await log.flush()
  }
  log.line({ level: 'error', msg: 'the last words' })
  await log.close()
  const text = await read()
  t.ok(Buffer.byteLength(text) <= 1024 * 1024, `${Buffer.byteLength(text)} bytes`)
  const lines = parsed(text)
  t.equal(lines[0]?.msg, 'line 0')
  t.equal(lines.at(-1)?.msg, 'the last words')
  const note = lines.find(line => line.level === 'warning')
  const said = Number(/^(\d+) lines/.exec(note?.msg ?? '')?.[1])
  t.equal(said + lines.length - 1, 1_000_001, 'every line is there or counted')
})

test('lines that arrive faster than they can be stored are counted, and the newest are kept', async t => {
  const { open, read } = setUp()
  const log = open()
  for (let index = 0; index < 100_000; index += 1) log.line({ level: 'info', msg: `line ${index}` })
  await log.close()
  const lines = parsed(await read())
  t.equal(lines.at(-1)?.msg, 'line 99999')
  const said = lines
    .map(line => Number(/^(\d+) lines/.exec(line.msg)?.[1] ?? 0))
    .reduce((sum, count) => sum + count, 0)
  t.equal(said + lines.length - 1, 100_000)
})

test('a line that is dropped is neither stamped nor searched for secrets', async t => {
  const { open, read, spent } = setUp()
  const log = open()
  for (let index = 0; index < 500_000; index += 1) log.line({ level: 'info', stream: 'stdout', msg: '' })
  await log.close()
  t.ok(spent.stamps <= 5_000, `${spent.stamps} of half a million lines were stamped`)
  t.ok(spent.cleaned <= 5_000, `${spent.cleaned} were searched`)
  const lines = parsed(await read())
  const said = lines
    .map(line => Number(/^(\d+) lines/.exec(line.msg)?.[1] ?? 0))
    .reduce((sum, count) => sum + count, 0)
  t.equal(said + lines.length - 1, 500_000, 'every line is there or counted')
})

test('no more of long lines waits than the record can keep', async t => {
  const { open, spent } = setUp()
  const log = open()
  for (let index = 0; index < 3_000; index += 1)
    log.line({ level: 'info', stream: 'stdout', msg: 'x'.repeat(16_000) })
  await log.close()
  t.ok(spent.cleanedCharacters <= 2 ** 20, `${spent.cleanedCharacters} characters were searched`)
})

test('binary output and endless lines stay valid JSON of bounded length', async t => {
  const { open, read } = setUp()
  const log = open()
  log.line({ level: 'info', stream: 'stdout', msg: '\u0000\u0001\ud800 binary \u001b[31m' })
  log.line({ level: 'info', stream: 'stdout', msg: 'x'.repeat(10_000_000) })
  await log.close()
  const lines = parsed(await read())
  t.match(lines[0]?.msg, /binary/)
  t.ok((lines[1]?.msg.length ?? 0) < 9000)
  t.match(lines[1]?.msg, /more characters/)
  t.notMatch(await read(), /\u0000/)
})

test('a line that is cut before it is cleaned says so to whoever cleans it', async t => {
  const { open, read, cleaned } = setUp()
  const log = open()
  log.line({ level: 'info', stream: 'stdout', msg: 's3cret'.repeat(4000) })
  await log.close()
  t.same(
    cleaned.map(text => [text.length, text.endsWith(cutMark)]),
    [[16_384 + cutMark.length, true]]
  )
  t.match(parsed(await read())[0]?.msg, / … \(more than \d+ more characters\)$/)
})

test('a second process goes on where the first one stopped', async t => {
  const { open, read, chunkCount } = setUp()
  const first = open()
  first.line({ level: 'info', msg: 'before' })
  await first.flush()
  const second = open()
  second.line({ level: 'info', msg: 'after' })
  await second.close()
  t.same(
    parsed(await read()).map(line => line.msg),
    ['before', 'after']
  )
  t.equal(chunkCount(), 2)
})
