import { test } from 'tap'
import { kindConflicts, resourceFaults, resourceRecord } from '../../core/declarations/resource-kinds.js'

const spec = (fields: object = {}) => ({ kind: 'note', table: 'note', ...fields }) as never

test('each part of a declared kind of resource is of its form, and the fault names it', t => {
  const faultsOf = (fields: object): string[] => resourceFaults('notes', spec(fields), [])
  const fine = [
    {},
    { kind: 'a-b_c', table: '_t0', name: 'title', parents: { project: 'project_id' } },
    { kind: 'a'.repeat(40), table: `t${'0'.repeat(62)}` },
    { removal: {} },
    { removal: { teardown: { id: 'notes.teardown' }, turnsBy: 'owner_id', run() {}, deleted() {} } }
  ]
  for (const fields of fine) t.same(faultsOf(fields), [], JSON.stringify(fields))
  const faulty: ReadonlyArray<readonly [fields: object, fault: RegExp]> = [
    [{ kind: 1 }, /^its kind is/],
    [{ kind: 'Note' }, /^its kind is/],
    [{ kind: 'a'.repeat(41) }, /40 characters at most/],
    [{ table: 'x.note' }, /^table is/],
    [{ table: undefined }, /^table is/],
    [{ table: `t${'0'.repeat(63)}` }, /^table is/],
    [{ parents: { Project: 'project_id' } }, /^parents names/],
    [{ parents: { project: 'a b' } }, /^parents names/],
    [{ parents: null }, /^parents names/],
    [{ parents: 'project' }, /^parents names/],
    [{ name: 'a b' }, /^name is/],
    [{ name: 1 }, /^name is/],
    [{ removal: null }, /^removal is an object/],
    [{ removal: 1 }, /^removal is an object/],
    [{ removal: { teardown: { id: 'other.teardown' } } }, /^teardown is/],
    [{ removal: { teardown: { id: 1 } } }, /^teardown is/],
    [{ removal: { teardown: null } }, /^teardown is/],
    [{ removal: { turnsBy: 'a b' } }, /^turnsBy is/],
    [{ removal: { run: 1 } }, /^run is not a function/],
    [{ removal: { deleted: 1 } }, /^deleted is not a function/]
  ]
  for (const [fields, fault] of faulty) {
    const faults = faultsOf(fields)
    t.equal(faults.length, 1, JSON.stringify(fields))
    t.match(faults[0], fault)
  }
  t.end()
})

test('a kind is declared once, and by one plugin', t => {
  const mine = resourceRecord('notes', spec())
  t.same(resourceFaults('notes', spec(), [mine]), ['declared twice'])
  t.same(kindConflicts([mine], [mine]), [])
  t.same(kindConflicts([mine], [resourceRecord('books', spec({ kind: 'book' }))]), [])
  t.same(kindConflicts([mine], [resourceRecord('books', spec())]), [
    'the kind "note" is already declared by "books"'
  ])
  t.same(mine, {
    plugin: 'notes',
    kind: 'note',
    table: 'note',
    parents: {},
    name: undefined,
    removal: undefined
  })
  t.ok(Object.isFrozen(mine) && Object.isFrozen(mine.parents))
  const removal = resourceRecord('notes', spec({ removal: { turnsBy: 'owner_id', other: 1 } })).removal
  t.same(removal, { teardown: undefined, turnsBy: 'owner_id', run: undefined, deleted: undefined })
  t.ok(Object.isFrozen(removal))
  t.end()
})
