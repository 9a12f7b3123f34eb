import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { type Test, test } from 'tap'
import { openPostgres } from '../../core/database/postgres.js'
import { JobStore } from '../../core/jobs/job-store.js'
import { Lane } from '../../core/jobs/lane.js'
import { createDatabase } from '../cluster/database.js'

/**
 * A lane whose connections are of a role of its own, which PostgreSQL may be told to let in no more, and the log lines of what it
 * and its connections have to say, without those that are for debugging.
 */
async function lab(t: Test) {
  const { url, drop } = await createDatabase()
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const role = `r_${process.pid}_${Math.random().toString(36).slice(2)}`
  await admin.query(`create role ${role} login password 'none'`)
  await admin.query(
    `do $$ begin execute format('grant create on database %I to ${role}', current_database()); end $$`
  )
  // Of two the last one counts.
  const own = `${url}${url.includes('?') ? '&' : '?'}user=${role}&password=none`
  const lines: string[] = []
  const failures: string[] = []
  const note = (_: object | string, text?: string): void => void lines.push(text ?? String(_))
  const log = {
    trace: () => {},
    debug: () => {},
    info: note,
    warn: note,
    error: (_: object, text: string) => void failures.push(text)
  } as unknown as Log
  const postgres = await openPostgres({ url: own, log })
  await new JobStore(postgres, log).prepare()
  const ran: string[] = []
  const lane = new Lane({
    name: 'short',
    workers: 2,
    postgres,
    log,
    onFailed: async () => {},
    onWorkersEnded: () => {}
  })
  lane.take('shop:a', async () => void ran.push('shop:a'))
  lane.start()
  t.teardown(async () => {
    await admin.query(`alter role ${role} connection limit -1`)
    await lane.stop(Promise.resolve())
    await postgres.close()
    await admin.query(`drop owned by ${role}; drop role ${role}`)
    await admin.end()
    await drop()
  })
  return {
    admin,
    role,
    ran,
    lines,
    failures,
    add: async (): Promise<void> => void (await admin.query("select from graphile_worker.add_job('shop:a')"))
  }
}

for (const [code, what] of [
  ['53200', 'memory'],
  ['53100', 'disk'],
  ['53300', 'connections']
])
  test(`a worker whose statements are refused for want of ${what} waits, says so once, and goes on by itself`, async t => {
    const { admin, ran, lines, failures, add } = await lab(t)
    await admin.query(`
      create table refused (code text); create sequence refusals; create function refuse() returns trigger language plpgsql as $$
      begin
        if exists (select from public.refused) then
          perform nextval('public.refusals');
          raise exception 'no room left' using errcode = (select code from public.refused);
        end if;
        return coalesce(new, old);
      end $$;
      alter function refuse() security definer;
      create trigger refuse before update or delete on graphile_worker._private_jobs for each row execute function refuse();
      insert into refused values ('${code}')`)
    await add()
    const refused = async (): Promise<number> =>
      Number((await admin.query('select last_value as count from refusals')).rows[0].count)
    await until(async () => (await refused()) > 4, 'the job is asked for again and again')
    await admin.query('delete from refused')
    await until(() => ran.length === 1, 'it runs')
    await until(
      async () => (await admin.query('select from graphile_worker._private_jobs')).rowCount === 0,
      'it is recorded as done'
    )
    t.same(lines, [
      'jobs wait until PostgreSQL answers their workers',
      'PostgreSQL answers the workers of jobs again'
    ])
    t.same(failures, [])
    t.equal(ran.length, 1)
  })

test('workers and the session wait while PostgreSQL lets no connection in, say so once, and go on by themselves', async t => {
  const { admin, role, ran, lines, failures, add } = await lab(t)
  await add()
  await until(() => ran.length === 1, 'the workers have begun')
  const connections = `from pg_stat_activity where usename = '${role}'`
  await admin.query(`alter role ${role} connection limit 0; select pg_terminate_backend(pid) ${connections}`)
  await add()
  await until(() => lines.some(line => line.includes('could not be made')), 'it is told')
  await admin.query(`alter role ${role} connection limit -1`)
  await until(() => ran.length === 2, 'the job runs')
  await until(() => lines.some(line => line.includes('stands again')), 'it is told that it is over')
  const told = (text: string): number => lines.filter(line => line.includes(text)).length
  t.equal(told('could not be made'), 1)
  t.equal(told('stands again'), 1)
  // On a slow machine none may be idle then.
  t.ok(told('an idle connection') <= 1, 'not of each connection that was lost')
  t.same(failures, [])
})
