import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { backUp, contentOf, createDatabase, ended, lines, openPlatform, pathOf, writeContent } from './kit.js'

/** A restore that fails, while what it has changed cannot be put back. */
async function unsettled(t: Parameters<typeof openPlatform>[0]) {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const id = await createDatabase(opened, 'Shop', lines(1_000))
  const path = pathOf(project, id)
  const backup = await backUp(admin, path)
  await writeContent(probe, id, lines(10, 'later'))
  probe.restoreError = 'the server refused it'
  probe.settleError = 'the engine is away'
  await admin.post(`${path}/restore`, { backup_id: backup.id })
  const newest = async () => (await admin.get(`${path}/restores`)).body[0]
  const settles = () => probe.calls.filter(call => call === `settle restore ${id}`).length
  await until(async () => /is tried again/.test((await newest()).log), 'it to wait')
  return {
    ...opened,
    id,
    path,
    newest,
    settles,
    // As the job does by itself, a minute later.
    again: async () => await k.enqueue('backups', 'restore', { restoreId: (await newest()).id })
  }
}

test(
  'a restore whose changes cannot be put back is not over before they are',
  { timeout: 60_000 },
  async t => {
    const { probe, path, id, admin, newest, settles, again } = await unsettled(t)
    t.match(await newest(), { status: 'running', finished_at: null })
    for (let before = settles(), round = 1; round <= 4; round++) {
      await again()
      await until(() => settles() === before + round, 'the next look')
      t.match(await newest(), { status: 'running' }, 'however often it was looked')
    }
    probe.settleError = null
    await again()
    const restore = await ended(admin, `${path}/restores`)
    t.match(restore, { status: 'failed', error: /the server refused it/ })
    t.equal(
      probe.calls.filter(call => call === `restore ${id}`).length,
      1,
      'what has failed is not begun again'
    )
    t.match(await contentOf(probe, id), /^later/)
  }
)

test('one that comes to its end by itself, when it can, has not failed', { timeout: 60_000 }, async t => {
  const { probe, path, admin, again } = await unsettled(t)
  probe.settleError = null
  probe.isExchanged = true
  await again()
  t.match(await ended(admin, `${path}/restores`), { status: 'succeeded', error: '' })
})
