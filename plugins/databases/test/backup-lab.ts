import { randomUUID } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import type { Lab, Made } from './lab.js'

const longMs = 420_000

/** Undefined where the platform says no more than that it was asked too often. */
async function listOf({ ann }: Pick<Lab, 'ann'>, path: string) {
  const { status, body } = await ann.get(path)
  return status === 429 ? undefined : body
}

/** The id of a backup that was asked for by hand; fails with the reason where it does not succeed. */
export async function backedUp({ ann }: Lab, { path }: Made): Promise<string> {
  const before = (await ann.get(`${path}/backups`)).body.length as number
  const { status, body } = await ann.post(`${path}/backups`)
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  const made = await until(
    async () => {
      const all = await listOf({ ann }, `${path}/backups`)
      return all?.length > before && all[0].status !== 'running' ? all[0] : undefined
    },
    'the backup to end',
    longMs
  )
  if (made.status !== 'succeeded') throw new Error(`${made.error}\n${made.log}`)
  return made.id
}

/** A backup of these databases alone, as a schedule makes it. */
export async function backupOf({ ann }: Lab, { path }: Made, databases: readonly string[]) {
  const project = path.slice(0, path.indexOf('/databases/'))
  const name = `Here ${randomUUID()}`
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
      const all = await listOf({ ann }, `${path}/backups`)
      return all?.[0]?.config_id === config.body.id && all[0].status !== 'running' ? all[0] : undefined
    },
    'the backup to end',
    longMs
  )
}

/** A restore as it ended, well or not. `more` goes with what is asked for. */
export async function restored({ ann }: Lab, { path }: Made, backupId: string, more: object = {}) {
  const before = (await ann.get(`${path}/restores`)).body.length as number
  const { status, body } = await ann.post(`${path}/restore`, { backup_id: backupId, ...more })
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  return await until(
    async () => {
      const all = await listOf({ ann }, `${path}/restores`)
      return all?.length > before && all[0].finished_at !== null ? all[0] : undefined
    },
    'the restore to end',
    longMs
  )
}
