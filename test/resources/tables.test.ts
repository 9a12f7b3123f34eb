import type { Tx } from 'busbar/sdk'
import { test } from 'tap'
import type { ResourceRecord } from '../../core/declarations/records.js'
import { heldRemedy } from '../../core/resources/held-row.js'
import { ResourceTable } from '../../core/resources/resource-table.js'
import { RunningKinds } from '../../core/resources/running-kinds.js'

const record = (fields: Partial<ResourceRecord> = {}): ResourceRecord => ({
  plugin: 'notes',
  kind: 'note',
  table: 'note',
  parents: { project: 'project_id' },
  name: 'title',
  removal: { teardown: undefined, turnsBy: undefined, run: undefined, deleted: undefined },
  ...fields
})

/** A table of a database that says what it was asked, and answers with `rows`. */
function tableOf(fields: Partial<ResourceRecord> = {}, rows: object[] = []) {
  const asked: [sql: string, values: unknown][] = []
  const query = async (sql: string, values: unknown) => {
    asked.push([sql.replace(/\s+/g, ' ').trim(), values])
    return rows
  }
  const kind = { record: record(fields), schema: 'x_notes', self: {} }
  return { table: new ResourceTable({ onTablesOf: () => ({ query }) } as never, kind), asked }
}

test('a resource that is being removed is hidden from users alone, where it can be marked', async t => {
  const { table, asked } = tableOf({}, [{ parents: { project: 'p' } }])
  t.same(await table.parentsOf('n'), { project: 'p' })
  await table.parentsOf('n', { visible: true })
  t.match(asked, [
    [/from "x_notes"\."note" where id = \$1$/, ['n']],
    [/and deleting_at is null$/, ['n']]
  ])
  const unmarked = tableOf({ removal: undefined })
  t.equal(await unmarked.table.parentsOf('n', { visible: true }), undefined)
  t.notMatch(unmarked.asked[0]?.[0], /deleting_at/)
})

test('names are asked for where a kind has names, and there is something to name', async t => {
  const { table, asked } = tableOf({}, [{ id: 'n', name: 'a' }])
  t.same(await table.namesOf(['n']), [{ id: 'n', name: 'a' }])
  t.equal(asked.length, 1)
  t.same(await table.namesOf([]), [])
  const nameless = tableOf({ name: undefined })
  t.same(await nameless.table.namesOf(['n']), [])
  t.same(nameless.asked, [])
  t.equal(asked.length, 1)
})

test('what is marked goes with those of its kind that lie in it, and only what was not marked counts', async t => {
  const nested = tableOf({ parents: { project: 'project_id', note: 'parent_id' } }, [{ id: 'child' }])
  t.equal(await nested.table.mark('n', new Date(0), {} as Tx), false, 'the children alone')
  t.match(nested.asked[0]?.[0], /where \(id = \$1 or "parent_id" = \$1\) and deleting_at is null/)
  const { table, asked } = tableOf({}, [{ id: 'n' }])
  t.equal(await table.mark('n', new Date(0), {} as Tx), true)
  t.notMatch(asked[0]?.[0], / or /)
})

test('what lies in something that is removed is marked, but for what goes with another of its kind', async t => {
  const { table, asked } = tableOf({ parents: { project: 'project_id', note: 'parent_id' } }, [{ id: 'n' }])
  t.same(await table.markWithin({ kind: 'project', id: 'p' }, new Date(0)), ['n'])
  t.match(asked, [
    [/set deleting_at = \$2 where "project_id" = \$1/],
    [/and "parent_id" is null order by id$/]
  ])
  asked.splice(0)
  await table.markWithin({ kind: 'note', id: 'n' }, new Date(0))
  t.notMatch(asked[1]?.[0], /is null/)
  asked.splice(0)
  t.same(await table.markWithin({ kind: 'other', id: 'x' }, new Date(0)), [])
  t.same(asked, [], 'it lies in none of those')
})

test('a newer run takes the place of an older one, which takes back nothing of it', t => {
  const kinds = new RunningKinds()
  const [old, anew] = [{}, {}]
  const of = (fields: Partial<ResourceRecord> = {}) => ({ record: record(fields), schema: 's', self: {} })
  kinds.add(old, [of(), of({ kind: 'book', parents: {} }), of({ kind: 'page', removal: undefined })])
  t.same(
    kinds.childrenOf('project').map(one => one.record.kind),
    ['note'],
    'those with a removal of their own'
  )
  kinds.add(anew, [of()])
  kinds.withdraw(old)
  t.same(
    kinds.all().map(one => one.record.kind),
    ['note']
  )
  t.ok(kinds.get('note'))
  kinds.withdraw(anew)
  t.equal(kinds.get('note'), undefined)
  t.end()
})

test('the remedy for rows that are held names the plugin of their schema', t => {
  t.match(heldRemedy('x_my_notes.note'), /^enable the plugin "my-notes", .*\/api\/plugins\/my-notes\/purge/)
  t.match(heldRemedy('notes'), /"notes"/)
  t.end()
})
