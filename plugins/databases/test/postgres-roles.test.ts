import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { backedUp } from './backup-lab.js'
import { createDatabase } from './lab.js'
import { asked, members, others, withRoles } from './postgres-roles-lab.js'

/** Which backups are restored where, in turn; of both servers each kind is, and each into what another one has left. */
const plans = {
  15: { own: ['someBefore'], teller: ['someBefore', 'some', 'all'] },
  17: { own: ['some', 'all'], teller: ['some', 'someBefore', 'allBefore'] }
} as const

for (const [version, plan] of Object.entries(plans))
  test(`what PostgreSQL ${version} says of roles is proven by a drill, and restored where roles are others`, async t => {
    if (!(await requireDatabaseImages(t))) return
    const { lab, made, sql, backups, was, before, restore, proven } = await withRoles(t, version)
    t.match(was, {
      asked: {
        rows: '3 7 3',
        kept: 'alice {{auditor,reader}}',
        owners: 'postgres dba postgres postgres postgres',
        fallen: 'fallen false'
      },
      others: 'alice dba; dba; 0; true'
    })
    for (const [which, id] of Object.entries(backups))
      await t.test(`a drill proves it: ${which}`, async t => {
        await proven(t, made, id)
      })

    for (const which of plan.own)
      await t.test(`it is restored into its own server: ${which}`, async t => {
        await restore(t, made, backups[which])
        t.same(await asked(sql), was.asked)
        t.equal(await sql(others), was.others)
        t.equal(await sql(members), was.members)
      })

    await t.test('and into a server with another user', async t => {
      const teller = await createDatabase(lab, {
        name: 'teller',
        type: 'postgres',
        version,
        credentials: { user: 'teller', password: `t"e'l\\l $er \`x\`` }
      })
      const theirs = 'teller dba teller teller teller'
      for (const which of plan.teller)
        await t.test(which, async t => {
          const there = await restore(t, teller, backups[which])
          if (which === 'some' || which === 'someBefore') {
            t.same(await asked(there), was.asked, 'the names are those of the dump')
            t.equal(await there(others), 'nobody; nobody; 0; true', 'nobody else comes to be able to sign in')
            t.equal(await there(members), '')
            return
          }
          const then = which === 'all' ? was : before
          t.same(await asked(there), { ...then.asked, owners: theirs })
          t.equal(await there(others), then.others)
          t.equal(await there(members), was.members)
        })
      await t.test('which is backed up, proven and restored as any other', async t => {
        const again = await backedUp(lab, teller)
        await proven(t, teller, again)
        t.match(await asked(await restore(t, teller, again)), { rows: was.asked.rows, owners: theirs })
      })
    })
  })
