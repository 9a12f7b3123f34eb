import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { backedUp, restored } from './backup-lab.js'
import { createDatabase, type Made, runIn, startLab, untilRunning } from './lab.js'
import { drilled, leftOf } from './postgres-lab.js'

/** Names that stand for the server's own databases, or for any, in a grant that takes them as they are. */
const hostile = ['my\\sql', 'mysq_', 'm%', '%', 'back`tick', 'größe_1']
const named = (name: string): string => `\`${name.replace(/`/g, '``')}\``

test('a MariaDB database is backed up with all of its databases and users', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const signedIn = async (made: Made) => {
    const { body } = await ann.get(`${made.path}/credentials/reveal`)
    const own = body.credentials as Readonly<Record<string, string>>
    const as = async (user: string, password: string, text: string): Promise<string> =>
      await runIn(
        k,
        made.id,
        ['mariadb', '--host=127.0.0.1', `--user=${user}`, '--batch', '--skip-column-names', '-e', text],
        { MYSQL_PWD: password }
      )
    return {
      own,
      as,
      root: async (text: string) => await as('root', own.root_password ?? '', text),
      user: async (text: string) => await as(own.user ?? '', own.password ?? '', text)
    }
  }
  const made = await createDatabase(lab, { type: 'mariadb', version: '10.11' })
  const { own, as, root, user } = await signedIn(made)
  await root(`
    create table shop.kept (n int primary key); insert into shop.kept values (1), (2);
    ${hostile.map(name => `create database ${named(name)}; create table ${named(name)}.also (n int);`).join('\n')}
    create database \`second one\`; create table \`second one\`.also (n int); insert into \`second one\`.also values (3);
    create user reader@'%' identified by 'x1y2z3'; grant select on \`second one\`.* to reader@'%'`)
  const backupId = await backedUp(lab, made)

  await t.test('a drill restores it into a server of its own, and counts', async t => {
    t.match(await drilled(lab, made, backupId), {
      status: 'proven',
      rows: 3,
      detail: `${2 + hostile.length} databases`,
      error: null
    })
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  })

  await t.test('it is restored as it was', async t => {
    await root(`
      drop database \`second one\`; drop user reader@'%';
      delete from shop.kept where n = 1; create table shop.later (n int)`)
    const restore = await restored(lab, made, backupId)
    t.match(restore, { status: 'succeeded' }, `${restore.error} ${restore.log}`)
    await untilRunning(ann, made.path)
    t.equal(await user('select sum(n) from shop.kept'), '3')
    t.equal(await user('show tables from shop'), 'kept', 'what came later is gone')
    t.equal(await root('select n from `second one`.also'), '3')
    t.equal(await as('reader', 'x1y2z3', 'select n from `second one`.also'), '3')
    await t.rejects(as('reader', 'x1y2z3', 'select * from shop.kept'), /denied/)
    await t.rejects(
      user('select n from `second one`.also'),
      /denied/,
      'a right that it has not in the backup'
    )
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  })

  await t.test('into another database, whose own credentials stay as they are', async t => {
    const other = await createDatabase(lab, {
      name: 'copy',
      type: 'mariadb',
      version: '10.11',
      // In the backup there is one of this name, with another password and without a right to this database.
      credentials: { user: 'reader', database_name: 'shop' }
    })
    const there = await signedIn(other)
    t.match(await ann.post(`${other.path}/restore`, { backup_id: backupId }), {
      status: 400,
      body: { code: 'E_RESTORE_OTHER' }
    })
    const restore = await restored(lab, other, backupId, { from_other: true })
    t.match(restore, { status: 'succeeded' }, `${restore.error} ${restore.log}`)
    await untilRunning(ann, other.path)
    t.same((await signedIn(other)).own, there.own)
    t.equal(await there.user('select sum(n) from shop.kept'), '3')
    t.equal(await there.root('select n from `second one`.also'), '3')
    t.equal(await there.user('select n from `second one`.also'), '3', 'a right that it has in the backup')
    await t.rejects(there.as('reader', 'x1y2z3', 'select 1'), /denied/, 'the password in the backup')
    await t.rejects(there.as('root', own.root_password ?? '', 'select 1'), /denied/)
    t.equal(await there.as(own.user ?? '', own.password ?? '', 'select sum(n) from shop.kept'), '3')
  })

  await t.test(
    'into one whose user it has not, who gets its databases and nothing of the server',
    async t => {
      const fresh = await createDatabase(lab, { name: 'fresh', type: 'mariadb', version: '10.11' })
      const there = await signedIn(fresh)
      const restore = await restored(lab, fresh, backupId, { from_other: true })
      t.match(restore, { status: 'succeeded' }, `${restore.error} ${restore.log}`)
      await untilRunning(ann, fresh.path)
      t.equal(await there.user('select sum(n) from shop.kept'), '3')
      t.equal(await there.user('select n from `second one`.also'), '3')
      await there.user('create table fresh.own (n int)')
      for (const name of hostile) {
        await there.user(`insert into ${named(name)}.also values (1)`)
        t.equal(await there.user(`select n from ${named(name)}.also`), '1', name)
      }
      for (const text of [
        'select * from mysql.user',
        'update mysql.global_priv set priv = priv',
        'create database mysqx',
        'create database another',
        "grant select on shop.* to reader@'%'",
        'set global max_connections = 10'
      ])
        await t.rejects(there.user(text), /denied/, text)
      t.equal(
        await there.user(
          'select group_concat(privilege_type, is_grantable) from information_schema.user_privileges'
        ),
        'USAGENO',
        'it has no right to the server as a whole'
      )
    }
  )
})
