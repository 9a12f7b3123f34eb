/** What is read of the machine, from texts as Linux gives them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { cpuPercent, percentOf, pointOf, readCpuTimes, readMemory } from '../host/host-reading.js'
import { hostSource } from '../host/host-source.js'

const stat = (line: string): string => `${line}\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 123\n`

test('times of all processors together are read, those of guests counted once', t => {
  // user nice system idle iowait irq softirq steal guest guest_nice
  t.same(readCpuTimes(stat('cpu  100 10 50 800 40 5 15 30 60 7')), { busy: 210, total: 1050 })
  t.same(readCpuTimes(stat('cpu  100 0 50 850')), { busy: 150, total: 1000 }, 'of an old kernel')
  t.end()
})

test('what is no such text has no times', t => {
  for (const text of ['', 'cpu', 'cpu0 1 2 3 4\n', 'cpu  a b c\n', 'cpu  0 0 0 0\n', 'cpu  -1 2\n'])
    t.equal(readCpuTimes(text), null, JSON.stringify(text))
  t.end()
})

test('memory that could be given back is free, and swap is told apart', t => {
  const meminfo = [
    'MemTotal:        8000 kB',
    'MemFree:          500 kB',
    'MemAvailable:    6000 kB',
    'SwapTotal:       1000 kB',
    'SwapFree:         900 kB',
    ''
  ].join('\n')
  t.same(readMemory(meminfo), {
    memory: { used: 2000 * 1024, total: 8000 * 1024 },
    swap: { used: 100 * 1024, total: 1000 * 1024 }
  })
  t.same(readMemory(meminfo.replace(/MemAvailable.*\n/, '')).memory, {
    used: 7500 * 1024,
    total: 8000 * 1024
  })
  t.same(readMemory(''), { memory: null, swap: null })
  t.same(readMemory('MemTotal: 10 MB\nSwapTotal: 1 kB\n'), { memory: null, swap: null })
  t.end()
})

test('a share of the processors is what was busy between two readings', t => {
  t.equal(cpuPercent({ busy: 100, total: 1000 }, { busy: 150, total: 1200 }), 25)
  t.equal(cpuPercent({ busy: 0, total: 0 }, { busy: 1, total: 3 }), 33.33)
  t.equal(cpuPercent({ busy: 100, total: 1000 }, { busy: 90, total: 1200 }), 0, 'a clock that went back')
  t.equal(cpuPercent({ busy: 100, total: 1000 }, { busy: 900, total: 1200 }), 100)
  for (const [before, now] of [
    [null, { busy: 1, total: 2 }],
    [{ busy: 1, total: 2 }, null],
    [
      { busy: 1, total: 2 },
      { busy: 1, total: 2 }
    ],
    [
      { busy: 5, total: 20 },
      { busy: 1, total: 10 }
    ]
  ] as const)
    t.equal(cpuPercent(before, now), null)
  t.equal(percentOf(0.123456), 12.35)
  t.end()
})

test('a point has what was read, and no processors without a reading before', t => {
  const reading = { cpu: { busy: 1, total: 2 }, memory: null, swap: null, disk: { used: 1, total: 2 } }
  const at = new Date()
  t.same(pointOf(undefined, reading, at), {
    recordedAt: at,
    cpuPercent: null,
    memory: null,
    swap: null,
    disk: { used: 1, total: 2 }
  })
  t.end()
})

test('the machine is read as it is', async t => {
  const source = hostSource()
  const before = await source.read()
  // What it reads from is open now, and is read from its beginning again.
  const until = process.hrtime.bigint() + 50_000_000n
  while (process.hrtime.bigint() < until);
  const { cpu, memory, disk } = await source.read()
  t.ok((cpu?.busy ?? 0) > (before.cpu?.busy ?? 0), 'it was busy in between')
  await source.close()
  t.match(
    await source.read(),
    { cpu: { total: Number }, swap: { total: Number } },
    'and it can be opened again'
  )
  await source.close()
  t.ok(cpu !== null && cpu.total > cpu.busy)
  for (const space of [memory, disk]) t.ok(space !== null && space.used > 0 && space.used <= space.total)
})

test('where /proc cannot be read, Node is asked, and what nobody knows is null', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-proc-'))
  t.teardown(async () => {
    await rm(folder, { recursive: true })
  })
  const missing = hostSource(join(folder, 'missing'), join(folder, 'missing'))
  const nothing = await missing.read()
  await missing.close()
  t.match(nothing, { cpu: { total: Number }, memory: { total: Number }, swap: null, disk: null })

  await writeFile(join(folder, 'stat'), 'cpu  10 0 10 80 0 0 0 0 0 0\n')
  await writeFile(
    join(folder, 'meminfo'),
    'MemTotal: 100 kB\nMemAvailable: 25 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n'
  )
  const source = hostSource(folder, folder)
  t.teardown(async () => {
    await source.close()
  })
  t.match(await source.read(), {
    cpu: { busy: 20, total: 100 },
    memory: { used: 76_800, total: 102_400 },
    swap: { used: 0, total: 0 },
    disk: { total: Number }
  })
})
