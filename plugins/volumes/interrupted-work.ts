import { applicationTable } from 'busbar/api/applications'
import type { BulkConnection } from 'busbar/sdk'
import { enginePrefixLength, sparePrefix } from './volume-name.js'

/**
 * For who restores the platform. Files of a deleted volume that were to go when the archive was made have gone since, and under their
 * name may be those of another volume, which the archive does not know. What restores have left has a name of its own each.
 */
export const interruptedVolumes = {
  schema: 'volumes',
  needed: { engine_volume: ['name', 'application_id', 'discarded_at'] },
  end: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    const kept = await connection.query<{ name: string; application: string }>(
      `with kept as (
        update volumes.engine_volume set discarded_at = null
        where discarded_at is not null and not starts_with(name, $1) returning name, application_id)
      select substr(k.name, $2) as name, a.name as application from kept k
      join ${applicationTable.name} a on a.id = k.application_id order by 2, 1`,
      [sparePrefix, enginePrefixLength + 1]
    )
    return kept.map(
      ({ name, application }) =>
        `the files of the deleted volume ${name} of the application ${application} are kept, where there are any: make a volume of that name and delete it with its data, or they go with the application`
    )
  }
}
