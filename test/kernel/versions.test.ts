/**
 * What is told to have its version is asked for again after every operation that changes something: while it is said to be
 * unchanged, it must be what its handler answers now.
 */
import { createTestKernel, type HappyFixture, type TestAnswer } from 'busbar/sdk/testing'
import { test } from 'tap'
import type { RouteRecord } from '../../core/declarations/records.js'
import { requireEngine } from '../../lab/engine.js'
import { call, fixtureFor, type Happy, happyOf, order, removeRound, running } from './happy-round.js'

let asked = 0

/** An address that nobody has asked for: nothing of it is kept. */
const freshQuery = (): string => `?asked=${++asked}`

async function ask(
  fixture: HappyFixture,
  { url }: RouteRecord,
  options: { readonly query?: string; readonly tag?: string } = {}
): Promise<TestAnswer> {
  const { query, tag } = options
  const { answer } = await call(fixture, 'GET', url, {
    ...(query === undefined ? {} : { query }),
    ...(tag === undefined ? {} : { headers: { 'if-none-match': tag } })
  })
  return answer
}

/** What is wrong with what is said of an answer that somebody has. */
async function staleness(
  fixture: HappyFixture,
  record: RouteRecord,
  had: TestAnswer
): Promise<string | undefined> {
  const tag = String(had.headers.etag)
  if ((await ask(fixture, record, { tag })).status !== 304) return undefined
  const now = await ask(fixture, record, { query: freshQuery() })
  // What goes on by itself may have changed it since; then that is said.
  if ((await ask(fixture, record, { tag })).status !== 304) return undefined
  const [before, after] = [had, now].map(({ body, headers }) =>
    JSON.stringify([body, headers['x-total-count']])
  )
  return before === after ? undefined : `${record.url}: ${String(before)} is now ${String(after)}`
}

test('no operation changes what is told to be unchanged', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const happy = new Map<string, Happy>()
  for (const id of k.kernel.reconciler.entries.keys()) happy.set(id, await happyOf(id))
  const fixture = await fixtureFor(k, happy)
  const records = order(k).flatMap(id => [
    ...(running(k).find(entry => entry.id === id)?.run?.records.routes ?? [])
  ])
  const versioned = records.filter(({ version, access }) => version !== undefined && access.kind !== 'public')
  t.ok(versioned.length > 0)
  const stale: string[] = []
  let changes = 0
  for (const { plugin, method, url } of records) {
    if (method === 'GET') continue
    const had = new Map<RouteRecord, TestAnswer>()
    for (const record of versioned) had.set(record, await ask(fixture, record))
    const made = happy.get(plugin)?.calls[`${method} ${url.replace(/:(\w+)/g, '{$1}')}`]
    await call(fixture, method, url, (await made?.(fixture)) ?? {})
    for (const [record, answer] of had) {
      if (answer.status !== 200) continue
      const found = await staleness(fixture, record, answer)
      if (found !== undefined) stale.push(`after ${method} ${url}: ${found}`)
      if ((await ask(fixture, record, { tag: String(answer.headers.etag) })).status === 200) changes++
    }
  }
  t.same(stale, [])
  t.ok(changes > 5, `the answers did change, ${changes} times`)
  t.same(await removeRound(fixture), [])
})
