import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { createDatabase, lines, lockWaits, openPlatform, pathOf, removeDatabase } from './kit.js'

test('a schedule is not left of what was deleted beside it', { timeout: 120_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, project } = opened
  const destination = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: 'Cellar',
    provider: 'local'
  })
  const scheduled = async (name: string) => {
    const id = await createDatabase(opened, name, lines(1))
    const configs = `${pathOf(project, id)}/backup-configs`
    const { body } = await admin.post(configs, {
      destination_id: destination.body.id,
      schedule: '0 3 1 1 *'
    })
    return { id, one: `${configs}/${body.id}`, configId: body.id as string }
  }

  await t.test('its database', async t => {
    const { id, configId } = await scheduled('Removed')
    let removal: Promise<void> | undefined
    await k.transaction(async tx => {
      // As who makes a schedule holds what it is for.
      await k.query('update backups.source set name = name where resource_id = $1', [id], tx)
      removal = removeDatabase(opened, id)
      await until(async () => (await lockWaits(k)) > 0, 'the removal to wait')
      await k.query(
        `insert into backups.config select gen_random_uuid(), source_id, destination_id, schedule, time_zone, drill_schedule, prefix,
          keep_latest, enabled, quiesce, databases, last_run_at, created_at, updated_at
        from backups.config where id = $1`,
        [configId],
        tx
      )
    })
    await removal
    t.same(
      await k.query(
        'select c.id from backups.config c join backups.source s on s.id = c.source_id where s.resource_id = $1',
        [id]
      ),
      []
    )
  })

  await t.test('itself', async t => {
    const { one, configId } = await scheduled('Changed')
    let answer: Promise<{ readonly status: number }> | undefined
    await k.transaction(async tx => {
      await k.query('delete from backups.config where id = $1', [configId], tx)
      await k.query('delete from kernel.schedule where key = any($1)', [
        [`set:config/${configId}`, `set:drill/${configId}`]
      ])
      answer = admin.put(one, { schedule: '0 4 1 1 *' })
      await until(async () => (await lockWaits(k)) > 0, 'the change to wait')
    })
    t.equal((await answer)?.status, 404)
    t.same(await k.query('select key from kernel.schedule where key like $1', [`%${configId}`]), [])
  })
})
