import { until } from 'busbar/sdk/testing'
import type { Lab, Made } from './lab.js'

const longMs = 420_000

/** The id of a backup that was asked for by hand; fails with the reason where it does not succeed. */
export async function backedUp({ ann }: Lab, { path }: Made): Promise<string> {
  const before = (await ann.get(`${path}/backups`)).body.length as number
  const { status, body } = await ann.post(`${path}/backups`)
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  const made = await until(
    async () => {
      const { body: all } = await ann.get(`${path}/backups`)
      return all.length > before && all[0].status !== 'running' ? all[0] : undefined
    },
    'the backup to end',
    longMs
  )
  if (made.status !== 'succeeded') throw new Error(`${made.error}\n${made.log}`)
  return made.id
}

/** A restore as it ended, well or not. `more` goes with what is asked for. */
export async function restored({ ann }: Lab, { path }: Made, backupId: string, more: object = {}) {
  const before = (await ann.get(`${path}/restores`)).body.length as number
  const { status, body } = await ann.post(`${path}/restore`, { backup_id: backupId, ...more })
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  return await until(
    async () => {
      const { body: all } = await ann.get(`${path}/restores`)
      return all.length > before && all[0].finished_at !== null ? all[0] : undefined
    },
    'the restore to end',
    longMs
  )
}
