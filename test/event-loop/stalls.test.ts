import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { allow, definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type Call, pluginIn, stackText } from '../../core/event-loop/stack.js'
import { type Stall, StallRecord } from '../../core/event-loop/stall-record.js'

interface Line {
  readonly level: string
  readonly msg: string
  readonly plugin?: string
  readonly stallMs?: number
  readonly cpuMs?: number
  readonly stack?: string
}

function spin(): void {
  for (const end = performance.now() + 700; performance.now() < end; );
}

/** Some hundred milliseconds, all of them inside of one call. */
const backtrack = (): boolean => /^(a+)+$/.test(`${'a'.repeat(24)}!`)

const probe = definePlugin({
  id: 'probe',
  routes(route) {
    route({
      method: 'GET',
      url: '/api/probe/spin',
      summary: 'Spin',
      access: allow.public('a test'),
      handler: () => {
        spin()
        return {}
      }
    })
    route({
      method: 'GET',
      url: '/api/probe/backtrack',
      summary: 'Search',
      access: allow.public('a test'),
      handler: () => ({ found: backtrack() })
    })
  }
})

test('a plugin that makes the event loop stand still is named in the log, with its stack', async t => {
  const lines: Line[] = []
  const k = await createTestKernel({
    watchesEventLoop: true,
    inline: [{ manifest: { id: 'probe' }, definition: probe }],
    onLog: line => {
      if (line.includes('stood still')) lines.push(JSON.parse(line) as Line)
    }
  })
  t.teardown(async () => {
    await k.close()
  })
  const { stalls } = k.kernel
  const seen = (text: string): Stall | undefined => stalls.latest.find(({ stack }) => stack?.includes(text))

  // The thread that looks takes a moment to start, and a busy machine may keep it from looking.
  for (const end = Date.now() + 30_000; seen('at spin') === undefined && Date.now() < end; )
    await k.as.anonymous().get('/api/probe/spin')
  t.match(seen('at spin'), {
    plugin: 'probe',
    stack: / {4}at spin \(test\/event-loop\/stalls\.test\.ts:\d+:\d+\)\n/
  })
  t.ok((seen('at spin')?.ms ?? 0) >= 400, 'most of the time was measured')

  for (const end = Date.now() + 30_000; seen('at backtrack') === undefined && Date.now() < end; )
    await k.as.anonymous().get('/api/probe/backtrack')
  t.match(seen('at backtrack'), { plugin: 'probe' }, 'also in a search that calls nothing')

  const [line] = lines
  t.match(line, {
    level: 'warn',
    msg: new RegExp(`^the event loop stood still for ${line?.stallMs} ms`),
    stallMs: Number,
    cpuMs: Number
  })
  t.ok(lines.length < stalls.all.count, 'not every one has a line')
  t.ok((stalls.byPlugin.get('probe')?.count ?? 0) >= 2)
  await sleep(300)
  t.equal((await k.as.anonymous().get('/healthz')).status, 200, 'and all goes on')
})

test('without a stall nothing is said', async t => {
  const lines: string[] = []
  const k = await createTestKernel({ onLog: line => lines.push(line) })
  spin()
  await sleep(100)
  t.equal(k.kernel.stalls.all.count, 0, 'nothing is watched unless it was asked for')
  await k.close()
  t.notOk(lines.some(line => line.includes('stood still')))
})

const root = pathToFileURL(join(import.meta.dirname, '../..')).href
const call = (name: string, url: string): Call => ({ name, url, line: 9, column: 1 })

test('the innermost call into a plugin says whose it is, and a stack shows places only', async t => {
  const calls = [
    call('', 'node:fs'),
    call('entry', `${root}/node_modules/tar-fs/index.js`),
    call('read', `${root}/plugins/builds/git/a.js`),
    call('run', `${root}/plugins/deployments/b.js`),
    call('handle', `${root}/core/http/edge.js`)
  ]
  t.equal(pluginIn(calls), 'builds')
  t.equal(
    pluginIn([
      call('x', 'file:///elsewhere/plugins/builds/a.js'),
      call('handle', `${root}/core/http/edge.js`)
    ]),
    undefined
  )
  t.equal(pluginIn([]), undefined)
  t.equal(
    stackText(calls.slice(0, 3)),
    '    at <anonymous> (node:fs:10:2)\n    at entry (node_modules/tar-fs/index.js:10:2)\n    at read (plugins/builds/git/a.js:10:2)'
  )
  t.equal(stackText(Array.from({ length: 100 }, () => call('x', 'node:fs'))).split('\n').length, 20)
})

test('the record counts by plugin, blames nobody without a reason, and keeps the latest', async t => {
  const record = new StallRecord()
  const stall = (ms: number, plugin?: string): Stall => ({
    ms,
    cpuMs: 1,
    at: new Date(),
    plugin,
    stack: undefined
  })
  for (const one of [stall(300, 'builds'), stall(900), stall(500, 'builds')]) record.add(one)
  t.same(record.all, { count: 3, totalMs: 1700, longestMs: 900 })
  t.same([...record.byPlugin], [['builds', { count: 2, totalMs: 800, longestMs: 500 }]])
  for (let n = 0; n < 100; n++) record.add(stall(1000 + n))
  t.equal(record.latest.length, 20)
  t.equal(record.latest.at(-1)?.ms, 1099)
})
