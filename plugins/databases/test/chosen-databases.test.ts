import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, type Lab, type Made, startLab } from './lab.js'

const longMs = 120_000

/** A backup of these databases alone, as a schedule makes it. */
async function backedUp({ ann }: Lab, { path }: Made, databases: readonly string[]) {
  const project = path.slice(0, path.indexOf('/databases/'))
  const name = `Here ${databases.join(' ')}`
  const destination = await ann.post(`${project}/backup-destinations`, { name, provider: 'local' })
  const config = await ann.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 1 1 *',
    databases
  })
  const { status, body } = await ann.post(`${path}/backup-configs/${config.body.id}/run`)
  if (status !== 202) throw new Error(`${status} ${JSON.stringify([config.body, body])}`)
  return await until(
    async () => {
      const { body: all } = await ann.get(`${path}/backups`)
      return all[0]?.config_id === config.body.id && all[0].status !== 'running' ? all[0] : undefined
    },
    'the backup to end',
    longMs
  )
}

test('a backup of a database that is not there fails, and does not count as an empty one', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const made = await createDatabase(lab, { type: 'postgres', version: '15' })
  t.match(await backedUp(lab, made, ['shop', 'nope']), {
    status: 'failed',
    error: 'there is no database nope in it'
  })
  t.match(await backedUp(lab, made, ['shop\npostgres']), { status: 'failed' })
  t.match(await backedUp(lab, made, ['shop']), { status: 'succeeded', target_database: 'shop' })
})
