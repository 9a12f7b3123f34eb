import { randomUUID } from 'node:crypto'
import { createTestKernel, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { makeApplication } from '../../domains/test/lab.js'
import { requestRecorder } from '../api.js'
import { all, asked, pathsOf, record, rowsOf, stored } from './requests-lab.js'

takeAwayFromEngine()

const minute = 60_000
const begin = Date.parse('2026-01-31T12:00:10.500Z')
const at = (minutes: number): number => begin + minutes * minute

async function domain(client: TestClient, domains: string, hostname: string, path = '/'): Promise<void> {
  const { status } = await client.post(domains, { hostname, path, ssl_mode: 'off' })
  if (status !== 201) throw new Error(`no domain: ${status}`)
}

test('requests are kept with the application that hostname and path lead to', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const shop = await makeApplication(admin)
  const blog = await makeApplication(admin, shop.projectId)
  await domain(admin, shop.domains, 'www.example.com')
  await domain(admin, blog.domains, 'www.example.com', '/blog')
  await domain(admin, blog.domains, '*.example.org')
  record(
    k,
    { path: '/' },
    { path: '/blogger' },
    { path: '/blog?page=2' },
    { path: '/blog/a' },
    { path: '/other', hostname: 'a.example.org.' },
    { path: '/nobody', hostname: 'other.example.com' },
    // Who knows whose it is says so.
    { path: '/told', hostname: 'other.example.com', applicationId: shop.id },
    { path: '/told-nobody', applicationId: null }
  )
  await stored(k, 8)
  t.same((await pathsOf(admin, `${shop.path}/requests`)).sort(), ['/', '/blogger', '/told'])
  t.same((await pathsOf(admin, `${blog.path}/requests`)).sort(), ['/blog/a', '/blog?page=2', '/other'])
  t.equal((await rowsOf(admin)).length, 8)
  t.same(
    (await rowsOf(admin, all, '?search=nobody')).map(row => row.application_id),
    [null, null]
  )

  const id = randomUUID()
  record(k, { id, path: '/new' })
  await stored(k, 9)
  t.equal(
    (await admin.delete(`${shop.domains}/${(await admin.get(shop.domains)).body[0].id as string}`)).status,
    200
  )
  record(k, { path: '/gone' })
  await stored(k, 10)
  t.match(
    (await rowsOf(admin, all, '?search=/gone'))[0],
    { application_id: null },
    'a route that has gone leads nowhere'
  )
  t.match(await rowsOf(admin, all, `?search=${id}`), [{ id, path: '/new', application_id: shop.id }])

  await t.test('a row is as the contract has it, with its secrets masked', async t => {
    const [row] = await rowsOf(admin, all, '?search=/new')
    t.match(row, {
      hostname: 'www.example.com',
      method: 'GET',
      status_code: 200,
      latency_ms: 12,
      request_size: 0,
      response_size: 345,
      client_ip: '203.0.113.9',
      user_agent: 'curl/8'
    })
    t.ok(Date.now() - Date.parse(String(row?.recorded_at)) < minute)
    record(k, { path: '/in?token=s3cr3t', userAgent: 'Bearer abcdefghijklmnop' })
    await stored(k, 11)
    t.match((await rowsOf(admin, all, '?search=/in'))[0], {
      path: '/in?token=[REDACTED]',
      user_agent: 'Bearer [REDACTED]'
    })
  })

  await t.test('what is written twice is kept once, and a stranger among them harms none', async t => {
    const twice = asked({ id: randomUUID(), path: '/twice' })
    const before = (await rowsOf(admin, all, '?limit=200')).length
    record(k, twice, twice, { applicationId: randomUUID(), path: '/unknown' }, { path: '\0\ud800' })
    k.service(requestRecorder).record({} as never)
    await stored(k, before + 2)
    t.same(
      await pathsOf(admin, all, '?search=/unknown'),
      [],
      'nothing is kept of an application that there is not'
    )
    t.equal((await rowsOf(admin, all, '?search=/twice')).length, 1)
  })

  await t.test('while domains are off requests are kept for nobody', async t => {
    await k.disable('domains', { cascade: true })
    record(k, { path: '/off', hostname: 'a.example.org' })
    await stored(k, 14)
    t.match(await rowsOf(admin, all, '?search=/off'), [{ application_id: null }])
  })
})

/** Ten requests, the first one the oldest; each has its number as its path. */
async function tenRequests(k: TestKernel, applicationId: string): Promise<void> {
  record(
    k,
    ...Array.from({ length: 10 }, (_, n) => ({
      path: `/${n}`,
      // Two of one time.
      at: at(n === 9 ? 8 : n),
      statusCode: [200, 204, 301, 404, 404, 500, 503, 200, 101, 200][n] ?? 200,
      latencyMs: (n + 1) * 10,
      applicationId: n < 5 ? applicationId : null
    }))
  )
  await stored(k, 10)
}

test('the history is paged and filtered, and its summary is of the same', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const shop = await makeApplication(admin)
  await tenRequests(k, shop.id)
  const whole = ['/9', '/8', '/7', '/6', '/5', '/4', '/3', '/2', '/1', '/0']

  await t.test('pages follow each other by offset and by cursor', async t => {
    t.same(await pathsOf(admin), whole)
    t.same(await pathsOf(admin, all, '?limit=3&offset=2'), ['/7', '/6', '/5'])
    t.same(await pathsOf(admin, all, '?limit=300'), whole, 'a bad limit is the default')
    t.same(await pathsOf(admin, `${shop.path}/requests`), whole.slice(5))
    const first = await admin.get(`${all}?limit=4`)
    t.equal(first.headers['x-total-count'], '10')
    record(k, { path: '/later' })
    await stored(k, 11)
    const found: string[] = []
    for (let cursor: string | undefined = String(first.headers['x-next-cursor']); cursor !== undefined; ) {
      const page = await admin.get(`${all}?limit=4&cursor=${cursor}`)
      found.push(...(page.body as Array<{ path: string }>).map(({ path }) => path))
      cursor = page.headers['x-next-cursor'] as string | undefined
    }
    t.same(found, whole.slice(4))
    await k.query("delete from requests.request where path = '/later'")
    for (const cursor of ['x', '1', '9'.repeat(40), randomUUID().toUpperCase()])
      t.match(await admin.get(`${all}?cursor=${cursor}`), {
        status: 400,
        body: { code: 'E_REQUESTS_CURSOR', field: 'cursor' }
      })
    t.same(await pathsOf(admin, all, '?cursor=ffffffff-ffff-ffff-ffff-ffffffffffff'), whole)
    t.same(await pathsOf(admin, all, '?offset=99'), [])
  })

  await t.test('all filters must match', async t => {
    const cases: Readonly<Record<string, readonly string[]>> = {
      [`application_id=${shop.id}`]: ['/4', '/3', '/2', '/1', '/0'],
      'status_min=400': ['/6', '/5', '/4', '/3'],
      'status_min=400&status_max=499': ['/4', '/3'],
      'status_max=199': ['/8'],
      [`status_min=400&application_id=${shop.id}`]: ['/4', '/3'],
      'from=2026-01-31T12:07:10.500Z': ['/9', '/8', '/7'],
      'to=2026-01-31T12:02:10.500Z': ['/1', '/0'],
      'from=yesterday&to=2026-02-30T00:00:00Z&search=': whole,
      'status_min=&application_id=': whole,
      'search=%2F3': ['/3'],
      'search=WWW.EXAMPLE': whole,
      'search=203.0.113': whole,
      [`search=${randomUUID()}`]: []
    }
    for (const [query, wanted] of Object.entries(cases))
      t.same(await pathsOf(admin, all, `?${query}`), wanted, query)
    for (const field of ['status_min', 'status_max'])
      for (const value of ['x', '99', '600', '2e2', '200.5', '-200'])
        t.match(await admin.get(`${all}?${field}=${value}`), {
          status: 400,
          body: { code: 'E_REQUESTS_STATUS', field }
        })
    t.match(await admin.get(`${all}?application_id=1`), {
      status: 400,
      body: { code: 'E_REQUESTS_APPLICATION', field: 'application_id' }
    })
  })

  await t.test('a text is looked for as it stands', async t => {
    const texts = ['/%', '/_', '/\\', "/'", '/a%b', '/a_b', '/*', '/.*', '/ÄÖ']
    record(k, ...texts.map(path => ({ path })))
    await stored(k, 10 + texts.length)
    for (const text of texts) {
      const found = await pathsOf(admin, all, `?search=${encodeURIComponent(text)}`)
      t.same(found, texts.filter(other => other.includes(text)).reverse(), text)
    }
    t.same(await pathsOf(admin, all, `?search=${encodeURIComponent('äö')}`), ['/ÄÖ'])
    await k.query('delete from requests.request where path = any($1)', [texts])
  })

  await t.test('the summary says what they have come to, with the minutes in which nothing came', async t => {
    const { body } = await admin.get(`${all}/summary`)
    t.match(body, {
      total: 10,
      class_counts: { c2xx: 4, c3xx: 1, c4xx: 2, c5xx: 2 },
      p50_ms: 55,
      p95_ms: 95.5,
      error_rate: 20
    })
    t.equal(body.per_minute.length, 9)
    t.same(body.per_minute[0], { ts: '2026-01-31T12:00:00.000Z', count: 1 })
    t.same(body.per_minute[8], { ts: '2026-01-31T12:08:00.000Z', count: 2 })
    const wide = await admin.get(
      `${all}/summary?from=2026-01-31T11:58:00Z&to=2026-01-31T12:12:00Z&status_min=500`
    )
    t.match(wide.body, { total: 2, p50_ms: 65, error_rate: 100 })
    t.same(
      (wide.body.per_minute as Array<{ count: number }>).map(({ count }) => count),
      [0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    )
    const none = await admin.get(`${all}/summary?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z`)
    t.same(none.body, {
      total: 0,
      class_counts: { c2xx: 0, c3xx: 0, c4xx: 0, c5xx: 0 },
      p50_ms: 0,
      p95_ms: 0,
      error_rate: 0,
      per_minute: []
    })
    const long = await admin.get(`${all}/summary?from=2020-01-01T00:00:00Z`)
    t.equal(long.body.per_minute.length, 1440, 'the last day of it')
    t.equal(long.body.per_minute.at(-1).count, 2)
    t.match(await admin.get(`${all}/summary?status_min=x`), { status: 400 })
  })

  await t.test('who sees the application sees its requests, and admins see all of them', async t => {
    const stranger = await k.as.session('stranger')
    t.equal((await stranger.get(`${shop.path}/requests`)).status, 404)
    for (const path of [all, `${all}/summary`, `${all}/stream`])
      t.equal((await stranger.get(path)).status, 403, path)
    const pinned = await k.as.token('read', { pins: [shop.projectId] })
    t.equal((await pinned.get(`${shop.path}/requests`)).status, 200)
    for (const path of [all, `${all}/summary`, `${all}/stream`])
      t.match(await pinned.get(path), { status: 403, body: { code: 'E_PROJECT_PINNED' } })
    const other = await makeApplication(await k.as.session('other'))
    t.match(await pinned.get(`${other.path}/requests`), { status: 403 })
    const mixed = shop.path.replace(shop.projectId, other.projectId)
    t.equal((await admin.get(`${mixed}/requests`)).status, 404, 'nor in another project')
  })
})
