import { allow, countedRows, definePlugin, object, pagedList, pageOf, Type } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { record } from '../../core/declarations/recorder.js'

const numbers = Array.from({ length: 250 }, (_, n) => ({ n }))

const plugin = {
  manifest: { id: 'probe' },
  definition: definePlugin({
    id: 'probe',
    routes(route) {
      const common = {
        summary: 'Numbers',
        items: object({ n: Type.Integer() }),
        access: allow.public('a test')
      } as const
      const rowsOf = (page: { limit: number; offset: number }, all = numbers) => ({
        rows: all.slice(page.offset, page.offset + page.limit),
        total: all.length
      })
      route.list({ ...common, url: '/api/whole', handler: ({ page }) => rowsOf(page) })
      route.list({
        ...common,
        url: '/api/by-cursor',
        page: pagedList,
        cursor: true,
        handler: ({ page: { limit, offset, cursor } }) => {
          const from = Number(cursor ?? 0) + offset
          const rows = numbers.slice(from, from + limit)
          const isLast = from + limit >= numbers.length
          return {
            rows,
            total: cursor === undefined ? numbers.length : undefined,
            next: isLast ? undefined : String(from + limit)
          }
        }
      })
      route.list({
        ...common,
        url: '/api/paged',
        page: pagedList,
        query: { odd: Type.Optional(Type.Boolean()) },
        handler: ({ page, query }) =>
          rowsOf(page, query.odd === true ? numbers.filter(({ n }) => n % 2 === 1) : numbers)
      })
      route.list({
        url: '/api/named',
        summary: 'Names',
        access: allow.public('a test'),
        items: Type.String(),
        query: { name: Type.Array(Type.String()) },
        handler: ({ page, query }) => pageOf(page, query.name)
      })
    }
  })
}

test('a declared list takes limit and offset, falls back where they are wrong, and says how many there are in all', async t => {
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(async () => {
    await k.close()
  })
  const client = k.as.anonymous()
  const ask = async (path: string): Promise<[length: number, first: unknown, total: unknown]> => {
    const { body, headers } = await client.get(path)
    return [body.length, body[0]?.n, headers['x-total-count']]
  }
  t.same(await ask('/api/whole'), [250, 0, '250'])
  t.same(await ask('/api/whole?limit=10&offset=5'), [10, 5, '250'])
  t.same(await ask('/api/whole?limit=-1&offset=x'), [250, 0, '250'])
  t.same(await ask('/api/paged'), [50, 0, '250'])
  t.same(await ask('/api/paged?limit=200'), [200, 0, '250'])
  t.same(await ask('/api/paged?limit=201'), [50, 0, '250'])
  t.same(await ask('/api/paged?odd=true&limit=2'), [2, 1, '125'])
  t.same(await ask('/api/paged?offset=900'), [0, undefined, '250'])
  t.same(
    await ask(`/api/whole?offset=${'9'.repeat(30)}`),
    [0, undefined, '250'],
    'behind the end, not at the beginning'
  )
  t.same(await ask('/api/named?name=Ada'), [1, undefined, '1'], 'a list of one is written as one value is')
  t.same(await ask('/api/named?name=Ada&name=Joan'), [2, undefined, '2'])
})

test('a list whose pages have no size, or that takes limit or offset for something else, is refused', t => {
  const declare = (more: object) => () =>
    record(
      definePlugin({
        id: 'odd',
        routes(route) {
          route.list({
            url: '/api/odd',
            summary: 'Odd',
            access: allow.public('a test'),
            items: Type.Integer(),
            handler: ({ page }) => pageOf(page, [1]),
            ...more
          })
        }
      }),
      { id: 'odd', builtIn: true }
    )
  for (const page of [{ fallback: 0, max: 5 }, { fallback: 5, max: 2 }, { fallback: 1, max: Number.NaN }, {}])
    t.throws(declare({ page }), { message: /\/api\/odd: page is \{ fallback, max \}/ }, JSON.stringify(page))
  for (const name of ['limit', 'offset'])
    t.throws(declare({ query: { [name]: Type.Integer() } }), { message: `has its own ${name}` }, name)
  t.doesNotThrow(declare({ page: { fallback: 1, max: 1 } }))
  t.end()
})

test('a list with a cursor tells the next one, and leaves out a total that it does not know', async t => {
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(async () => {
    await k.close()
  })
  const client = k.as.anonymous()
  const found: number[] = []
  const totals: unknown[] = []
  let query = '?limit=100'
  for (let pages = 0; pages < 5; pages++) {
    const { body, headers } = await client.get(`/api/by-cursor${query}`)
    found.push(...body.map(({ n }: { n: number }) => n))
    totals.push(headers['x-total-count'])
    const next = headers['x-next-cursor']
    if (next === undefined) break
    query = `?limit=100&cursor=${String(next)}`
  }
  t.same(
    found,
    numbers.map(({ n }) => n)
  )
  t.same(totals, ['250', undefined, undefined])
  t.equal((await client.get('/api/by-cursor?cursor=100&offset=5&limit=1')).body[0].n, 105)
  const { paths } = (await client.get('/api/openapi.json')).body
  const parameters = paths['/api/by-cursor'].get.parameters as ReadonlyArray<{ name?: string; $ref?: string }>
  t.same(
    parameters.slice(0, 3).map(({ name, $ref }) => name ?? $ref?.replace(/^.*\//, '')),
    ['limit', 'offset', 'cursor']
  )
  t.match(paths['/api/by-cursor'].get.responses[200].headers, { 'X-Next-Cursor': {}, 'X-Total-Count': {} })
  t.notMatch(paths['/api/paged'].get.responses[200].headers, { 'X-Next-Cursor': {} })
})

test('the rows of a page are counted only where the page does not show the number', async t => {
  let counts = 0
  const count = async (): Promise<Array<{ total: number }>> => {
    counts += 1
    return [{ total: 7 }]
  }
  t.same(await countedRows({ limit: 3, offset: 0 }, [1, 2], count), { rows: [1, 2], total: 2 })
  t.same(await countedRows({ limit: 3, offset: 0 }, [], count), { rows: [], total: 0 })
  t.equal(counts, 0)
  t.same(await countedRows({ limit: 2, offset: 0 }, [1, 2], count), { rows: [1, 2], total: 7 })
  t.same(await countedRows({ limit: 2, offset: 6 }, [1], count), { rows: [1], total: 7 })
  t.equal(counts, 2)
})
