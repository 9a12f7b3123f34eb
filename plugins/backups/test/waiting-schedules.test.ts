import { type TestClient, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import {
  backUp,
  createDatabase,
  ended,
  lines,
  type Opened,
  openPlatform,
  pathOf,
  startWith,
  untilTold
} from './kit.js'

const hour = 3_600_000

interface Made {
  readonly id: string
  readonly status: string
  readonly config_id: string | null
  readonly error: string
  readonly started_at: string
}

const backupsOf = async (admin: TestClient, path: string): Promise<Made[]> =>
  (await admin.get(`${path}/backups`)).body

async function destinationOf({ admin, project }: Opened): Promise<string> {
  const { body } = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: 'Cellar',
    provider: 'local'
  })
  return body.id as string
}

/** By a clock that is ahead of the database's: what waits begins when it is woken, or when the test asks for it. */
async function openWaiting(t: Parameters<typeof openPlatform>[0]) {
  const clock = testClock('2031-03-01T02:30:00Z')
  const opened = await openPlatform(t, { clock, environment: { JWT_EXPIRY_HOURS: '900' } })
  const { k, admin, probe, project } = opened
  const destination = await destinationOf(opened)
  const scheduled = async (path: string, given: object = {}): Promise<string> => {
    const { status, body } = await admin.post(`${path}/backup-configs`, {
      destination_id: destination,
      schedule: '0 * * * *',
      drill_schedule: '',
      ...given
    })
    if (status !== 201) throw new Error(JSON.stringify(body))
    return body.id as string
  }
  /** Their time comes, and each has been looked at. */
  const dueAgain = async (path: string): Promise<void> => {
    const times = async (): Promise<Array<string | null>> =>
      (await admin.get(`${path}/backup-configs`)).body.map((one: { next_run_at: string }) => one.next_run_at)
    const before = await times()
    clock.set(hour)
    await clock.advance(31_000)
    await until(async () => {
      const now = await times()
      return now.every((one, place) => one !== before[place]) && (await dueJobs(k)) === 0
    }, 'the schedules to have been due')
  }
  const held = (what: 'hold' | 'holdRestore'): (() => void) => {
    let end = (): void => {}
    probe[what] = new Promise(resolve => {
      end = resolve
    })
    const release = (): void => {
      probe[what] = null
      end()
    }
    t.teardown(release)
    return release
  }
  const database = async (name: string): Promise<string> =>
    pathOf(project, await createDatabase(opened, name, lines(5)))
  return { ...opened, clock, destination, scheduled, dueAgain, held, database }
}

const dueJobs = async (k: TestKernel): Promise<number> =>
  (await k.query("select from graphile_worker.jobs where task_identifier = 'backups:due'")).length

const untilOf = async (
  admin: TestClient,
  path: string,
  isSo: (all: readonly Made[]) => boolean,
  what: string
): Promise<readonly Made[]> =>
  await until(
    async () => {
      const all = await backupsOf(admin, path)
      return isSo(all) && all
    },
    what,
    60_000
  )

const isOver = (all: readonly Made[]): boolean => all.every(one => one.status !== 'running')

test(
  'of schedules that are due at one time each is made, one after another',
  { timeout: 240_000 },
  async t => {
    const opened = await openWaiting(t)
    const { k, admin, scheduled, dueAgain, database } = opened

    await t.test('also after all of it was missed', async t => {
      const path = await database('Pair')
      const ids = [
        await scheduled(path),
        await scheduled(path),
        await scheduled(path, { schedule: '0 */2 * * *' })
      ]
      opened.clock.set(4 * hour)
      await dueAgain(path)
      const made = await untilOf(admin, path, all => all.length >= 3 && isOver(all), 'each to be made')
      t.same(made.map(one => one.config_id).sort(), [...ids].sort(), 'each once')
      t.ok(made.every(one => one.status === 'succeeded'))
      t.ok(
        (await admin.get(`${path}/backup-configs`)).body.every(
          (one: { last_run_at: string | null }) => one.last_run_at !== null
        )
      )
      for (const id of ids) await admin.delete(`${path}/backup-configs/${id}`)
    })

    await t.test('by one of several processes', async t => {
      const other = await startWith(t, opened.probe, { state: k.state, clock: opened.clock })
      const path = await database('Several')
      const ids = [await scheduled(path), await scheduled(path), await scheduled(path), await scheduled(path)]
      for (let round = 1; round <= 3; round++) {
        await dueAgain(path)
        await untilOf(admin, path, all => all.length >= 4 * round && isOver(all), 'each to be made')
        const counts = new Map<string | null, number>()
        for (const { config_id: id } of await backupsOf(admin, path))
          counts.set(id, (counts.get(id) ?? 0) + 1)
        t.same([...counts.values()], [round, round, round, round])
      }
      for (const id of ids) await admin.delete(`${path}/backup-configs/${id}`)
      await other.stop()
    })
    await k.stop()
  }
)

test('what is due and meets other work waits for its end', { timeout: 240_000 }, async t => {
  const { k, admin, probe, clock, scheduled, dueAgain, held, database } = await openWaiting(t)

  await t.test('of a backup by hand', async t => {
    const path = await database('Manual')
    const id = await scheduled(path)
    const release = held('hold')
    t.equal((await admin.post(`${path}/backups`)).status, 202)
    await dueAgain(path)
    t.match(await backupsOf(admin, path), [{ status: 'running', config_id: null }])
    release()
    await untilOf(admin, path, all => all.length === 2 && isOver(all), 'it to be made')
    t.ok((await backupsOf(admin, path)).some(one => one.config_id === id && one.status === 'succeeded'))
    await admin.delete(`${path}/backup-configs/${id}`)
  })

  await t.test('of a restore', async t => {
    const path = await database('Restored')
    const backup = await backUp(admin, path)
    const id = await scheduled(path)
    const release = held('holdRestore')
    t.equal((await admin.post(`${path}/restore`, { backup_id: backup.id })).status, 202)
    await dueAgain(path)
    t.equal((await backupsOf(admin, path)).length, 1)
    release()
    await untilOf(admin, path, all => all.length === 2 && isOver(all), 'it to be made')
    t.match(await ended(admin, `${path}/restores`), { status: 'succeeded' })
    await admin.delete(`${path}/backup-configs/${id}`)
  })

  await t.test('of what its source does by itself, which is looked for again and again', async t => {
    const path = await database('Upgraded')
    const id = await scheduled(path)
    probe.backupRefusal = 'the database is upgrading now: try again later'
    probe.refusalPasses = true
    await dueAgain(path)
    t.same(await backupsOf(admin, path), [], 'it has not failed')
    const again = async (): Promise<void> => {
      await k.enqueue('backups', 'due-again', { configId: id })
      await until(
        async () =>
          (
            await k.query(
              "select from graphile_worker.jobs where task_identifier = 'backups:due-again' and run_at < now()"
            )
          ).length === 0,
        'it to be looked at'
      )
    }
    await again()
    t.same(await backupsOf(admin, path), [])
    probe.backupRefusal = null
    probe.refusalPasses = false
    await again()
    t.match(await ended(admin, `${path}/backups`), { status: 'succeeded', config_id: id })
    await again()
    t.equal((await backupsOf(admin, path)).length, 1, 'once')
    await admin.delete(`${path}/backup-configs/${id}`)
  })

  await t.test('and is not made once it is turned off, or was made by hand', async t => {
    const path = await database('Off')
    const [off, run] = [await scheduled(path), await scheduled(path)]
    const release = held('hold')
    t.equal((await admin.post(`${path}/backups`)).status, 202)
    await dueAgain(path)
    await admin.put(`${path}/backup-configs/${off}`, { enabled: false })
    await k.holdJobs('backups')
    release()
    await k.query("update backups.backup set status = 'succeeded' where status = 'running'")
    t.equal((await admin.post(`${path}/backup-configs/${run}/run`)).status, 202)
    await k.stop()
    const second = await startWith(t, probe, { state: k.state, clock })
    const again = await second.as.session()
    for (const configId of [off, run]) await second.enqueue('backups', 'due-again', { configId })
    await untilOf(again, path, all => all.length === 2 && isOver(all), 'the one by hand to be made')
    await until(
      async () =>
        (
          await second.query(
            "select from graphile_worker.jobs where task_identifier = 'backups:due-again' and run_at < now()"
          )
        ).length === 0,
      'both to be looked at'
    )
    t.same(
      (await backupsOf(again, path)).filter(one => one.config_id === off),
      [],
      'nobody wants it'
    )
    t.equal((await backupsOf(again, path)).filter(one => one.config_id === run).length, 1)
    await second.stop()
  })
})

test(
  'what waits until its next time is one backup then, and one that has failed, which is told',
  { timeout: 240_000 },
  async t => {
    const { k, admin, scheduled, dueAgain, held, database } = await openWaiting(t)
    const path = await database('Long')
    const id = await scheduled(path)
    const release = held('hold')
    t.equal((await admin.post(`${path}/backups`)).status, 202)
    await dueAgain(path)
    t.equal((await backupsOf(admin, path)).length, 1, 'it waits')
    await dueAgain(path)
    const [lost] = (await untilOf(admin, path, all => all.length === 2, 'one to have failed')).filter(
      one => one.config_id === id
    )
    t.match(lost, {
      status: 'failed',
      error:
        'what was due at 2031-03-01T03:00:00.000Z could not begin before it was due again: another backup was being made'
    })
    await untilTold(admin, ({ type, body }) => type === 'database.backup_failed' && body === lost?.error)
    release()
    await untilOf(admin, path, all => all.length === 3 && isOver(all), 'one to be made')
    t.same(
      (await backupsOf(admin, path)).filter(one => one.config_id === id).map(one => one.status),
      ['succeeded', 'failed'],
      'one, not two'
    )
    await dueAgain(path)
    await untilOf(admin, path, all => all.length === 4 && isOver(all), 'the next one to be made')
    t.equal((await backupsOf(admin, path)).filter(one => one.status === 'failed').length, 1)
    await k.stop()
  }
)
