import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { openLockers, shared } from './lockers.js'

test('a third-party plugin declares a resource: access, names and removal follow from that', async t => {
  const { k, admin, locker, isThere } = await openLockers(t)
  const one = await locker('one')
  const other = await locker('other')
  t.match(await admin.get(one.path), { status: 200, body: { id: one.id } })
  t.equal((await admin.get(one.path.replace(one.project, other.project))).status, 404, 'of another project')
  t.equal((await admin.get(one.path.replace(one.id, one.project))).status, 404, 'of another kind')
  t.equal((await (await k.as.session('ann')).get(one.path)).status, 404, 'of another user')

  t.match(await admin.delete(one.path), { status: 200, body: { removed: true } })
  t.match((await admin.get('/api/audit-logs?action=delete_locker')).body, {
    items: [{ resource_type: 'locker', resource_id: one.id }]
  })
  await until(() => shared.lockerLog.includes('deleted one'), 'the event')
  t.same(shared.lockerLog, ['untag with the key', 'empty one', 'delete one', 'deleted one'])
  t.notOk(await isThere('x_lockers.locker', one.id))
  t.ok(await isThere('x_lockers.locker', other.id))
  t.match((await admin.get(other.path)).status, 200)
})

test('what lies in a project goes with it, whether its plugins are on or off', async t => {
  const { admin, change, locker, isThere } = await openLockers(t)
  const first = await locker('first')
  t.equal((await admin.delete(`/api/projects/${first.project}`)).status, 200)
  await until(async () => !(await isThere('projects.project', first.project)), 'the project is gone')
  t.same(shared.lockerLog.slice(0, 3), ['untag with the key', 'empty first', 'delete first'])

  const second = await locker('second')
  for (const id of ['tags', 'lockers']) t.match(await change(id, 'disable'), { status: 200 })
  shared.lockerLog = []
  t.equal((await admin.delete(`/api/projects/${second.project}`)).status, 200)
  await until(async () => !(await isThere('projects.project', second.project)), 'the project is gone')
  t.same(
    shared.lockerLog,
    ['empty second', 'untag with the key', 'empty second', 'delete second'],
    'in one round'
  )
  for (const id of ['tags', 'lockers'])
    t.match((await admin.get(`/api/plugins/${id}`)).body, { state: 'stopped' })
})

test('a step that fails runs again, with all others, until it has succeeded', async t => {
  const { k, admin, locker, isThere } = await openLockers(t)
  const { project } = await locker('stuck')
  shared.lockerFailures = 2
  t.equal((await admin.delete(`/api/projects/${project}`)).status, 200)
  const tries = (): number => shared.lockerLog.filter(line => line === 'empty stuck').length
  for (const round of [1, 2]) {
    await until(() => tries() >= round, `round ${round} has failed`)
    t.ok(await isThere('projects.project', project))
    await k.runRemovalsNow()
  }
  await until(async () => !(await isThere('projects.project', project)), 'the project is gone')
  t.ok(tries() >= 3)
  t.equal(shared.lockerLog.filter(line => line === 'delete stuck').length, 1)
})
