import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { createDatabase, ended, lines, openPlatform, pathOf } from './kit.js'

test(
  'the last backup that is known to work stays while those behind it are not',
  { timeout: 180_000 },
  async t => {
    const opened = await openPlatform(t)
    const { admin, probe, project } = opened
    const path = pathOf(project, await createDatabase(opened, 'Proven', lines(5)))
    const { body: folder } = await admin.post(`/api/projects/${project}/backup-destinations`, {
      name: 'Folder',
      provider: 'local'
    })
    const { body: config } = await admin.post(`${path}/backup-configs`, {
      destination_id: folder.id,
      schedule: '0 3 1 1 *',
      drill_schedule: '',
      keep_latest: 2
    })
    const listed = async (): Promise<string[]> =>
      (await admin.get(`${path}/backups`)).body.map((one: { id: string }) => one.id)
    const made = async (): Promise<string> => {
      t.equal((await admin.post(`${path}/backup-configs/${config.id}/run`)).status, 202)
      const run = await ended(admin, `${path}/backups`)
      t.match(run, { status: 'succeeded' })
      return run.id
    }
    const drilled = async (id: string, error: string | null = null): Promise<void> => {
      probe.checkError = error
      t.equal((await admin.post(`${path}/backups/${id}/check`)).status, 202)
      await until(async () => {
        const one = (await admin.get(`${path}/backups`)).body.find(
          (found: { id: string; proof: { status: string } }) => found.id === id
        )
        return one.proof.status === (error === null ? 'proven' : 'failed')
      }, 'the drill to end')
      probe.checkError = null
    }
    /** Old ones go behind the end of a run: the one that is to go tells that they have. */
    const untilListed = async (ids: readonly string[], why: string): Promise<void> => {
      await until(async () => (await listed()).length === ids.length, why)
      t.same(await listed(), ids, why)
    }

    const first = await made()
    await drilled(first)
    const second = await made()
    await drilled(second, 'the server does not start')
    const third = await made()
    await drilled(third, 'the server does not start')
    t.same(await listed(), [third, second, first], 'those that are kept are known not to work')
    const fourth = await made()
    await untilListed([fourth, third, first], 'one that failed makes room')
    const fifth = await made()
    await untilListed(
      [fifth, fourth, first],
      'unproven ones behind a drill that failed are not known to work'
    )

    await drilled(fifth)
    const sixth = await made()
    await untilListed([sixth, fifth], 'a newer one is proven')
    const seventh = await made()
    await untilListed([seventh, sixth], 'no drill has failed since')

    // Of one that is older, it says nothing of those behind it.
    await drilled(seventh)
    await drilled(sixth, 'the server does not start')
    const eighth = await made()
    const ninth = await made()
    await untilListed([ninth, eighth], 'the proven one was the newer')
  }
)
