import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, runIn, startLab, untilRunning } from './lab.js'
import { untilUpgraded } from './postgres-lab.js'

test('an upgrade of MariaDB brings users, roles, rights, routines and each database', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann, k } = lab
  const made = await createDatabase(lab, { type: 'mariadb', version: '10.11' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const { user, password, root_password: rootPassword } = body.credentials as Record<string, string>
  const as = async (name: string, secret: string, text: string): Promise<string> =>
    await runIn(
      k,
      made.id,
      ['mariadb', '--host=127.0.0.1', `--user=${name}`, '--batch', '--skip-column-names', '-e', text],
      { MYSQL_PWD: secret }
    )
  const root = async (text: string): Promise<string> => await as('root', rootPassword ?? '', text)
  await root(`
    create table shop.kept (n int primary key); insert into shop.kept values (1), (2);
    create table shop.open (n int); grant select on shop.open to public;
    create database \`second one\`; create table \`second one\`.also (n int); insert into \`second one\`.also values (3);
    create role reader; grant select on shop.kept to reader;
    create role above; grant reader to above;
    create user ann@'%' identified by 'x1y2z3'; grant above to ann@'%'; set default role above for ann@'%';
    create user ben@'%' identified by 'x1y2z3'; grant select on \`second one\`.* to ben@'%';
    create procedure shop.twice(in n int) select n * 2;
    set global event_scheduler = on;
    create event shop.grows on schedule every 1 second do insert into shop.open values (1)`)
  const { container_id: before } = (
    await k.query<{ container_id: string }>('select container_id from databases.database')
  )[0] ?? { container_id: '' }
  await ann.post(`${made.path}/upgrade`, { target_version: '10.11' })
  const upgrade = await untilUpgraded(ann, made)
  t.match(upgrade, { phase: 'succeeded', from_version: '10.11', to_version: '10.11' }, upgrade.log)
  await untilRunning(ann, made.path)
  const { container_id: after } = (
    await k.query<{ container_id: string }>('select container_id from databases.database')
  )[0] ?? { container_id: '' }
  t.not(after, before, 'it is another server')

  t.equal(await as(user ?? '', password ?? '', 'select sum(n) from shop.kept'), '3')
  t.equal(await as(user ?? '', password ?? '', 'call shop.twice(21)'), '42')
  t.equal(await root('select n from `second one`.also'), '3')
  t.equal(
    await as('ann', 'x1y2z3', 'select sum(n) from shop.kept'),
    '3',
    'by a role of a role, set by default'
  )
  t.equal(await as('ben', 'x1y2z3', 'select n from `second one`.also'), '3')
  await t.rejects(as('ben', 'x1y2z3', 'select * from shop.kept'), /denied/)
  t.match(await as('ben', 'x1y2z3', 'select count(*) from shop.open'), /^\d+$/, 'what everybody may')
  t.match(await root('show events from shop'), /grows/)
})
