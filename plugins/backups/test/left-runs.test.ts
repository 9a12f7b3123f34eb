import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import {
  backUp,
  contentOf,
  createDatabase,
  ended,
  lines,
  type Opened,
  openPlatform,
  pathOf,
  untilTold,
  writeContent
} from './kit.js'

/** A schedule that is due when the test says so; its id. */
async function hourly({ admin, project }: Opened, path: string): Promise<string> {
  const destination = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: `Cellar ${path}`.slice(0, 90),
    provider: 'local'
  })
  const { status, body } = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 * 1 1 *'
  })
  if (status !== 201) throw new Error(`no schedule: ${JSON.stringify(body)}`)
  return body.id as string
}

/** The database refuses to record that a backup has failed, as it does when it goes away behind the first of two statements. */
async function refuseFailures({ k }: Opened, t: Test): Promise<() => Promise<void>> {
  await k.query(
    `create or replace function backups.refuse() returns trigger language plpgsql as $$ begin
      if new.status = 'failed' then raise exception 'the database is away'; end if;
      return new;
    end $$`
  )
  await k.query(
    'create trigger refuse before insert or update on backups.backup for each row execute function backups.refuse()'
  )
  const accept = async (): Promise<void> => {
    await k.query('drop trigger if exists refuse on backups.backup')
  }
  t.teardown(accept)
  return accept
}

test(
  'what could not begin at its time is recorded as failed, or not at all',
  { timeout: 240_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const statuses = async () =>
      (await k.query<{ status: string }>('select status from backups.backup')).map(({ status }) => status)
    /** Until it has been tried once, in vain. */
    const due = async (configId: string): Promise<void> => {
      await k.enqueue('backups', 'due', { configId })
      await until(
        async () =>
          (
            await k.query(
              "select from graphile_worker.jobs where task_identifier = 'backups:due' and last_error is not null"
            )
          ).length > 0,
        'it to be due'
      )
    }

    const path = pathOf(project, await createDatabase(opened, 'Asleep', lines(5)))
    const configId = await hourly(opened, path)

    await t.test('where its source refuses', async t => {
      probe.backupRefusal = 'the database is stopped: start it'
      const accept = await refuseFailures(opened, t)
      await due(configId)
      t.same(await statuses(), [], 'nothing that is under way for ever')
      await accept()
      t.match(await ended(admin, `${path}/backups`), { status: 'failed', error: probe.backupRefusal })
      probe.backupRefusal = null
      t.match(await backUp(admin, path), { status: 'succeeded' }, 'the next one may begin')
    })

    await t.test('where the plugin of its source is off, which is told', async t => {
      await k.disable('backup-probe')
      await k.query('delete from backups.backup')
      const accept = await refuseFailures(opened, t)
      await due(configId)
      t.same(await statuses(), [])
      await accept()
      await until(async () => (await statuses()).includes('failed'), 'it to be recorded')
      await untilTold(
        admin,
        ({ type, body }) => type === 'database.backup_failed' && /a plugin that is off/.test(body)
      )
      t.match(await admin.post(`${path}/backups`), { status: 404 }, 'its plugin knows it, and is off')
      await k.enable('backup-probe')
      await k.enqueue('backups', 'due', { configId })
      await until(async () => (await statuses()).includes('succeeded'), 'the next one to be made')
      t.match(
        ((await admin.get(`${path}/backups`)).body as Array<Record<string, unknown>>).map(one => one.status),
        ['succeeded', 'failed']
      )
    })
  }
)

test('what takes too long has failed, and is no stop of the platform', { timeout: 240_000 }, async t => {
  const clock = testClock()
  const opened = await openPlatform(t, { clock })
  const { k, admin, probe, project } = opened
  await k.configure('backups', { run_limit_minutes: 2 })
  const never = new Promise<void>(() => {})
  const made = async (name: string) => {
    const id = await createDatabase(opened, name, lines(20))
    const path = pathOf(project, id)
    return { id, path, backup: await backUp(admin, path) }
  }
  const [slow, restored, drilled] = [await made('Slow'), await made('Restored'), await made('Drilled')]
  // Of what began at one time, any may be the newest.
  await clock.advance(1_000)
  probe.hold = never
  probe.holdRestore = never
  probe.holdCheck = never
  await admin.post(`${slow.path}/backups`)
  await admin.post(`${restored.path}/restore`, { backup_id: restored.backup.id })
  await admin.post(`${drilled.path}/backups/${drilled.backup.id}/check`)
  for (const call of [`restore ${restored.id}`, `check ${drilled.id}`])
    await until(() => probe.calls.includes(call), `${call} to hang`)
  await until(() => probe.calls.filter(call => call === `dump ${slow.id}`).length === 2, 'the dump to hang')
  await clock.advance(121_000)
  const reason = /^it took longer than the 2 minutes that it may/
  const newest = async (list: string) => (await admin.get(list)).body[0]
  t.match(await ended(admin, `${slow.path}/backups`), { status: 'failed', error: reason })
  t.match(await ended(admin, `${restored.path}/restores`), { status: 'failed', error: reason })
  const proof = await until(async () => {
    const one = (await newest(`${drilled.path}/backups`)).proof
    return one.status === 'running' ? undefined : one
  }, 'the drill to end')
  t.match(proof, { status: 'failed', error: reason })
  probe.hold = null
  probe.holdRestore = null
  probe.holdCheck = null
  await clock.advance(1_000)
  for (const { path } of [slow, restored, drilled])
    t.match(await backUp(admin, path), { status: 'succeeded' }, 'the next one may begin')
})

test('what is under way and has no job is taken up again', { timeout: 240_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const made = async (name: string) => {
    const content = lines(20)
    const id = await createDatabase(opened, name, content)
    const path = pathOf(project, id)
    return { id, path, content, backup: await backUp(admin, path) }
  }
  const leave = async ({ backup }: { readonly backup: { readonly id: string } }, isBegun: boolean) => {
    await k.query(
      `insert into backups.backup (id, source_id, status, started_at, begun_at, version, databases, quiesce)
      select gen_random_uuid(), source_id, 'running', now() - interval '20 minutes',
        case when $2 then now() - interval '20 minutes' end, version, databases, quiesce
      from backups.backup where id = $1`,
      [backup.id, isBegun]
    )
  }
  const [waiting, begun, asked, restored, drilled] = [
    await made('Waiting'),
    await made('Begun'),
    await made('Asked'),
    await made('Restored'),
    await made('Drilled')
  ]
  const statusesOf = async (path: string) =>
    ((await admin.get(`${path}/backups`)).body as Array<{ status: string }>)
      .map(({ status }) => status)
      .sort()

  await t.test('when somebody asks for another one', async t => {
    await leave(asked, false)
    t.match(await admin.post(`${asked.path}/backups`), { status: 409, body: { code: 'E_BACKUP_BUSY' } })
    await until(
      async () => (await statusesOf(asked.path)).join() === 'succeeded,succeeded',
      'the one that was left to be made'
    )
  })

  await t.test('by the job that is run each day', async t => {
    await leave(waiting, false)
    await leave(begun, true)
    await writeContent(probe, restored.id, 'lost\n')
    await k.query(
      `insert into backups.restore (id, source_id, backup_id, status, started_at)
      select gen_random_uuid(), source_id, id, 'running', now() - interval '20 minutes' from backups.backup where id = $1`,
      [restored.backup.id]
    )
    await k.query(
      "update backups.backup set proof = 'running', proof_seen_at = now() - interval '20 minutes' where id = $1",
      [drilled.backup.id]
    )
    await k.enqueue('backups', 'sweep', {})
    await until(
      async () => (await statusesOf(waiting.path)).join() === 'succeeded,succeeded',
      'the backup to be made'
    )
    await until(
      async () => (await statusesOf(begun.path)).join() === 'failed,succeeded',
      'the one whose process had died to have failed'
    )
    t.match(await ended(admin, `${restored.path}/restores`), { status: 'succeeded' })
    t.equal(await contentOf(probe, restored.id), restored.content)
    await until(
      async () => (await admin.get(`${drilled.path}/backups`)).body[0].proof.status === 'proven',
      'the drill to end'
    )
  })

  await t.test('and what is at work is left alone', async t => {
    let release = (): void => {}
    probe.hold = new Promise(resolve => {
      release = resolve
    })
    t.teardown(() => release())
    const dumps = () => probe.calls.filter(call => call === `dump ${waiting.id}`).length
    const before = dumps()
    await admin.post(`${waiting.path}/backups`)
    await until(() => dumps() > before, 'it to be under way')
    await k.query(
      "update backups.backup set started_at = now() - interval '20 minutes' where status = 'running'"
    )
    t.match(await admin.post(`${waiting.path}/backups`), { status: 409 })
    release()
    probe.hold = null
    await until(
      async () => (await statusesOf(waiting.path)).join() === 'succeeded,succeeded,succeeded',
      'it to be made'
    )
  })
})
