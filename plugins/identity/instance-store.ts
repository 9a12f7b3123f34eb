import type { Database, Tx } from 'busbar/sdk'

/** The few facts about the installation that are given at setup, before any plugin has settings. */
export interface InstanceStore {
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, tx: Tx): Promise<void>
}

export function createInstanceStore (database: Database): InstanceStore {
  const rows = (tx?: Tx) => database.table<{ key: string, value: string }>('instance', tx)
  return Object.freeze<InstanceStore>({
    get: async key => (await rows().where({ key }).first('value'))?.value,
    async set (key, value, tx) {
      await rows(tx).insert({ key, value }).onConflict('key').merge()
    }
  })
}
