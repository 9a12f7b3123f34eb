import { join } from 'node:path'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { publishedTables } from '../structure/published-tables.js'

test('published tables have the columns that they declare, with these types', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const tables = [...(await publishedTables(join(import.meta.dirname, '../..'))).values()].flatMap(found => [
    ...found.values()
  ])
  t.not(tables.length, 0, 'tables were found')
  for (const { name, key, columns } of tables) {
    const rows = await k.query<{ name: string; type: string }>(
      `select attname as name, typname || case when attnotnull then '' else ' null' end as type
       from pg_attribute join pg_type on pg_type.oid = atttypid where attrelid = cast($1 as regclass) and attname = any($2) order by attname`,
      [name, Object.keys(columns)]
    )
    t.same(
      Object.fromEntries(rows.map(row => [row.name, row.type])),
      Object.fromEntries(
        Object.entries(columns).map(([column, type]) => [
          column,
          type.replace('boolean', 'bool').replace('integer', 'int4')
        ])
      ),
      name
    )
    const unique = await k.query(
      `select from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0]
       where indrelid = cast($1 as regclass) and indisprimary and indnatts = 1 and attname = $2`,
      [name, key]
    )
    t.equal(unique.length, 1, `${name} is identified by ${key}`)
  }
})
