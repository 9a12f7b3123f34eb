import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { backedUp, backupOf } from './backup-lab.js'
import { createDatabase, untilRunning } from './lab.js'
import { untilUpgraded } from './postgres-lab.js'
import { asked, members, others, sqlOf, withRoles } from './postgres-roles-lab.js'

test('a dump of PostgreSQL is restored where the user has the name of one of its roles', async t => {
  if (!(await requireDatabaseImages(t))) return
  const { lab, made, sql, backups, was, restore, proven } = await withRoles(t, '15')
  const { ann } = lab
  const alice = await createDatabase(lab, {
    name: 'alice',
    type: 'postgres',
    version: '15',
    credentials: { user: 'alice', password: 'another-secret' }
  })
  for (const which of ['some', 'someBefore'] as const)
    await t.test(which, async t => {
      const there = await restore(t, alice, backups[which])
      t.same(await asked(there), was.asked)
      t.equal(await there(others), 'nobody; nobody; 0; true')
    })

  const state = 'dba; dba postgres; 0; true'
  await t.test('all', async t => {
    const there = await restore(t, alice, backups.all)
    t.same(await asked(there), was.asked)
    t.equal(await there(others), state, 'its first role has no password')
    t.equal(await there("select rolcanlogin from pg_roles where rolname = 'postgres'"), 'f')
    t.equal(await there(members), was.members)
  })

  await t.test('it is upgraded as any other', async t => {
    await ann.post(`${alice.path}/upgrade`, { target_version: '17' })
    const upgrade = await untilUpgraded(ann, alice)
    t.match(upgrade, { phase: 'succeeded' }, upgrade.log)
    await untilRunning(ann, alice.path)
    const there = await sqlOf(lab, alice)
    t.same(await asked(there), was.asked)
    t.equal(await there(others), state)
  })

  await t.test('and backed up, proven and restored', async t => {
    const all = await backedUp(lab, alice)
    const some = await backupOf(lab, alice, ['stock'])
    for (const id of [some.id, all]) {
      await proven(t, alice, id)
      const there = await restore(t, alice, id)
      t.same(await asked(there), was.asked)
      t.equal(await there(others), state)
      t.equal(await there(members), was.members)
    }
    await ann.post(`${made.path}/upgrade`, { target_version: '17' })
    t.match(await untilUpgraded(ann, made), { phase: 'succeeded' })
    await untilRunning(ann, made.path)
    await restore(t, made, all)
    t.same(await asked(sql), was.asked)
    t.equal(await sql(others), 'dba; alice dba; 0; true', 'the user of the other one has no password there')
  })
})
