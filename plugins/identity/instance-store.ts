import type { Database, Tx } from 'busbar/sdk'

/** The few facts about the installation that are given at setup, before any plugin has settings. */
export class InstanceStore {
  constructor(private readonly db: Database) {}

  async get(key: string): Promise<string | undefined> {
    return (await this.#rows().where({ key }).first('value'))?.value
  }

  async set(key: string, value: string, tx?: Tx): Promise<void> {
    await this.#rows(tx).insert({ key, value }).onConflict('key').merge()
  }

  async remove(key: string, tx: Tx): Promise<void> {
    await this.#rows(tx).where({ key }).delete()
  }

  #rows(tx?: Tx) {
    return this.db.table<{ key: string; value: string }>('instance', tx)
  }
}
