import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { at, KeptLab, sharedPlatform } from './kept-lab.js'

takeAwayFromEngine()
const openLab = sharedPlatform()
const first = '11111111-1111-4111-8111-111111111111'
const second = '22222222-2222-4222-8222-222222222222'

test('a line of the history says what the contract has, the latest line first', async t => {
  const lab = await openLab()
  t.same((await lab.client.get(`${lab.path}/history`)).body, [], 'nothing is kept yet')
  await lab.write(lab.containerOf('a'), first, [
    { time: at(0, 1), text: 'one' },
    { time: at(0, 2), text: 'ERROR: two', stream: 'stderr' }
  ])
  const { rows, total, next } = await lab.page()
  t.match(rows, [
    {
      id: /^[0-9a-f-]{36}$/,
      source_type: 'application',
      source_id: lab.applicationId,
      level: 'error',
      stream: 'stderr',
      message: 'ERROR: two',
      recorded_at: '2026-01-02T03:04:05.000000002Z',
      container_id: lab.containerOf('a'),
      deployment_id: first
    },
    { level: 'info', stream: 'stdout', message: 'one', recorded_at: '2026-01-02T03:04:05.000000001Z' }
  ])
  t.equal(rows.length, 2)
  t.equal(total, '2')
  t.equal(next, undefined)
})

test('lines of one time neither repeat nor vanish, whatever the size of the pages', async t => {
  const lab = await openLab()
  const lines = Array.from({ length: 300 }, (_, n) => ({ time: at(n < 250 ? 7 : 8), text: `line ${n}` }))
  await lab.write(lab.containerOf('a'), first, lines.slice(0, 120), lines.slice(120, 121), lines.slice(121))
  for (const limit of [7, 100, 300, 1000]) {
    const found: string[] = []
    let cursor = ''
    do {
      const page = await lab.page(`?limit=${limit}${cursor}`)
      found.push(...page.messages)
      cursor = page.next === undefined ? '' : `&cursor=${page.next}`
    } while (cursor !== '')
    t.same(found, lines.map(({ text }) => text).reverse(), `pages of ${limit}`)
  }
  const byOffset: string[] = []
  for (let offset = 0; offset < 300; offset += 40)
    byOffset.push(...(await lab.page(`?limit=40&offset=${offset}`)).messages)
  t.same(byOffset, lines.map(({ text }) => text).reverse(), 'by offset')
  t.same((await lab.page('?limit=2&offset=298')).messages, ['line 1', 'line 0'])
  t.equal((await lab.page('?limit=2&offset=298')).next, undefined)
  t.same((await lab.page('?offset=300')).messages, [])
})

test('with a cursor, lines that come meanwhile move none of those behind it', async t => {
  const lab = await openLab()
  await lab.write(
    lab.containerOf('a'),
    first,
    Array.from({ length: 10 }, (_, n) => ({ time: at(n), text: `line ${n}` }))
  )
  const { next } = await lab.page('?limit=4')
  await lab.write(
    lab.containerOf('a'),
    first,
    Array.from({ length: 10 }, (_, n) => ({ time: at(100 + n), text: `later ${n}` }))
  )
  t.same((await lab.page(`?limit=3&cursor=${next}`)).messages, ['line 5', 'line 4', 'line 3'])
  t.same((await lab.page(`?limit=3&cursor=${next}&offset=2`)).messages, ['line 3', 'line 2', 'line 1'])
  t.same((await lab.page('?limit=1&cursor=nonsense')).messages, ['later 9'], 'a bad one is none')
  t.same((await lab.page(`?limit=1&cursor=${randomUUID()}`)).messages, ['later 9'])
})

test('lines of containers that write at once stand in the order of their times', async t => {
  const lab = await openLab()
  // One has been read after the other, as after an outage.
  const ofA = Array.from({ length: 200 }, (_, n) => ({ time: at(n * 10), text: `a ${n}` }))
  const ofB = Array.from({ length: 200 }, (_, n) => ({ time: at(n * 10 + 5), text: `b ${n}` }))
  const parts = (lines: typeof ofA) => [lines.slice(0, 3), lines.slice(3, 90), lines.slice(90)]
  await lab.write(lab.containerOf('a'), first, ...parts(ofA))
  await lab.write(lab.containerOf('b'), second, ...parts(ofB))
  const expected = Array.from({ length: 200 }, (_, n) => [`a ${n}`, `b ${n}`])
    .flat()
    .reverse()
  t.same((await lab.page('?limit=1000')).messages, expected)
  const found: string[] = []
  for (let cursor = ''; ; ) {
    const { messages, next } = await lab.page(`?limit=33${cursor}`)
    found.push(...messages)
    if (next === undefined) break
    cursor = `&cursor=${next}`
  }
  t.same(found, expected)
})

test('filters narrow by text, level, stream, time and container, and all must match', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, [
    { time: at(0), text: 'Listening on 3000' },
    { time: at(1000), text: 'error: 100% of _it_ broke', stream: 'stderr' },
    { time: at(2000), text: 'WARN slow' }
  ])
  await lab.write(lab.containerOf('b'), second, [
    { time: at(3000), text: 'debug: ÉLAN' },
    { time: at(4000), text: 'error: again' }
  ])
  const found = async (query: string) => (await lab.page(query)).messages
  t.same(await found('?q=listening'), ['Listening on 3000'], 'upper and lower case are the same')
  t.same(await found('?q=élan'), ['debug: ÉLAN'])
  t.same(await found('?q=é'), ['debug: ÉLAN'], 'no letter of ASCII is in it')
  t.same(await found(`?q=${'x'.repeat(500)}`), [])
  t.same(await found(`?q=${encodeURIComponent('100% of _')}`), ['error: 100% of _it_ broke'])
  t.same(await found('?q=100_'), [], 'nothing stands for anything else')
  t.same(await found(`?q=${encodeURIComponent('\\')}`), [])
  t.same(await found('?level=error'), ['error: again', 'error: 100% of _it_ broke'])
  t.same(await found('?level=warning'), ['WARN slow'])
  t.same(await found('?level=debug&q=slow'), [])
  t.same(await found('?stream=stderr'), ['error: 100% of _it_ broke'])
  t.same(await found('?level=error&stream=stdout'), ['error: again'])
  t.same(await found('?since=2026-01-02T03:04:07Z&until=2026-01-02T03:04:09Z'), ['debug: ÉLAN', 'WARN slow'])
  t.same(await found('?since=2026-01-02T04:04:09+01:00'), ['error: again'])
  t.same(await found(`?session=${lab.containerOf('a')}&level=error`), ['error: 100% of _it_ broke'])
  t.same(await found('?session=bbbbbbbbbbbb'), ['error: again', 'debug: ÉLAN'])
  t.same(await found('?session=none'), [], 'each line is of a container')
  t.same(await found('?session=%25'), [])
  for (const bad of [
    'level=loud',
    'stream=stdin',
    'since=yesterday',
    'until=2026-13-45',
    'q=',
    'limit=0',
    'limit=x',
    'offset=-1'
  ])
    t.equal((await found(`?${bad}`)).length, 5, `${bad} narrows nothing`)
  t.equal((await found('?limit=1001')).length, 5)
  t.match(await lab.client.get(`${lab.path}/history?q=%00`), { status: 400 })
})

test('times and cursors of any year are taken', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, [{ time: at(0), text: 'one' }])
  const count = async (query: string) => (await lab.page(`?${query}`)).messages.length
  for (const query of [
    'until=9999-12-31T23:59:59Z',
    'since=0000-01-01T00:00:00Z&until=9999-12-31T23:59:59.999999999-23:59',
    'since=0001-01-01T00:00:00%2B23:59',
    'cursor=ffffffff-ffff-8000-801f-ffffffffffff'
  ])
    t.equal(await count(query), 1, query)
  for (const query of [
    'since=9999-12-31T23:59:59Z',
    'until=0000-01-01T00:00:00Z',
    'until=0000-01-01T00:00:00%2B23:59',
    'cursor=00000000-0000-8000-8000-000000000000'
  ])
    t.equal(await count(query), 0, query)
})

test('a page of long lines ends early, and the cursor goes on behind its last one', async t => {
  const lab = await openLab()
  const long = 'z'.repeat(16_384)
  const given = Array.from({ length: 300 }, (_, n) => ({ time: at(n), text: `line ${n} ${long}` }))
  await lab.write(lab.containerOf('a'), first, given)
  const found: string[] = []
  const sizes: number[] = []
  for (let cursor = ''; ; ) {
    const { messages, next } = await lab.page(`?limit=1000${cursor}`)
    found.push(...messages)
    sizes.push(messages.length)
    if (next === undefined) break
    cursor = `&cursor=${next}`
  }
  t.same(found, given.map(({ text }) => text).reverse())
  t.same(sizes, [63, 63, 63, 63, 48])
})

test('how many there are is told where that does not take reading all of them', async t => {
  const lab = await openLab()
  await lab.write(
    lab.containerOf('a'),
    first,
    Array.from({ length: 20 }, (_, n) => ({ time: at(n), text: n % 2 === 0 ? 'even' : 'odd error' }))
  )
  await lab.write(lab.containerOf('b'), second, [{ time: at(50), text: 'other' }])
  t.equal((await lab.page('?limit=5')).total, '21')
  t.equal((await lab.page(`?limit=5&session=${lab.containerOf('a')}`)).total, '20')
  t.equal((await lab.page('?limit=5&level=error')).total, undefined)
  t.equal((await lab.page('?limit=50&level=error')).total, '10', 'a page that shows all of them')
  const { next } = await lab.page('?limit=5')
  t.equal((await lab.page(`?limit=5&cursor=${next}`)).total, undefined)
})

test('sessions are the containers of which lines are kept, with what is known of their deployments', async t => {
  const lab = await KeptLab.open()
  t.teardown(() => lab.close())
  const sessions = async () => (await lab.client.get(`${lab.path}/sessions`)).body
  t.same(await sessions(), [])
  const { body: deployment } = await lab.client.post(
    `/api/projects/${lab.projectId}/applications/${lab.applicationId}/deploy`
  )
  await lab.write(lab.containerOf('a'), deployment.id, [
    { time: at(0), text: 'one' },
    { time: at(5), text: 'two' }
  ])
  await lab.write(lab.containerOf('b'), second, [{ time: at(9), text: 'three' }])
  await lab.write(lab.containerOf('c'), second, [])
  t.match(await sessions(), [
    {
      container_id: lab.containerOf('b'),
      deployment_id: second,
      commit_sha: null,
      triggered_by: null,
      status: null,
      started_at: null,
      first_at: '2026-01-02T03:04:05.009Z',
      last_at: '2026-01-02T03:04:05.009Z',
      line_count: 1
    },
    {
      container_id: lab.containerOf('a'),
      deployment_id: deployment.id,
      commit_sha: null,
      triggered_by: 'manual',
      status: String,
      started_at: String,
      first_at: '2026-01-02T03:04:05.000Z',
      last_at: '2026-01-02T03:04:05.005Z',
      line_count: 2
    }
  ])
  t.equal((await sessions()).length, 2, 'a container without a line is none')
  for (let n = 0; n < 55; n++)
    await lab.write(`${String(n).padStart(2, '0')}${'e'.repeat(62)}`, randomUUID(), [
      { time: at(1000 + n), text: 'x' }
    ])
  t.equal((await sessions()).length, 50)
  await lab.k.disable('deployments', { force: true })
  t.match((await sessions())[0], { status: null, line_count: 1 }, 'without deployments too')
})
