import { type ChannelContext, isUuid, problemTable } from 'busbar/sdk'
import type { ChannelRecord as Declared } from '../declarations/records.js'

const problems = problemTable({
  channelTaken: [
    500,
    'E_BUS_CHANNEL_TAKEN',
    'plugin {plugin} cannot declare channel {name}: plugin {owner} has it; choose another name'
  ]
})

/** What a plugin has declared about a channel, its source bound to the running plugin. */
export interface ChannelRecord
  extends Pick<Declared, 'plugin' | 'name' | 'prefix' | 'param' | 'access' | 'events' | 'summary'>,
    Partial<Pick<Declared, 'endsWith' | 'description'>> {
  readonly source?: ((context: ChannelContext) => void | Promise<void>) | undefined
  readonly current?:
    | {
        readonly event: string
        readonly read: (ids: readonly string[]) => Promise<ReadonlyMap<string, unknown>>
      }
    | undefined
}

const idLength = 36

/** The declared channels. A name without an id goes before one that ends in an id. */
export class ChannelTable {
  readonly #fixed = new Map<string, ChannelRecord>()
  readonly #withId = new Map<string, ChannelRecord>()
  #records: readonly ChannelRecord[] = []

  /** Takes the place of all that `plugin` had declared before; all or, on a conflict, nothing. */
  replace(plugin: string, records: readonly ChannelRecord[]): void {
    for (const record of records) {
      const taken = this.#mapOf(record).get(record.prefix)
      if (taken !== undefined && taken.plugin !== plugin) {
        throw problems.channelTaken({ plugin, name: record.name, owner: taken.plugin })
      }
    }
    this.remove(plugin)
    this.#records = [...this.#records, ...records]
    for (const record of records) this.#mapOf(record).set(record.prefix, record)
  }

  /** All of them, as a list that never changes: the next change makes another. */
  get records(): readonly ChannelRecord[] {
    return this.#records
  }

  remove(plugin: string): void {
    this.#records = this.#records.filter(record => record.plugin !== plugin)
    for (const map of [this.#fixed, this.#withId]) {
      for (const [key, record] of map) if (record.plugin === plugin) map.delete(key)
    }
  }

  /** Undefined for an undeclared channel and for an id that is not a lowercase hyphenated UUID. */
  find(name: string): { readonly record: ChannelRecord; readonly id: string | undefined } | undefined {
    const fixed = this.#fixed.get(name)
    if (fixed !== undefined) return { record: fixed, id: undefined }
    const record = this.#withId.get(name.slice(0, -idLength))
    const id = name.slice(-idLength)
    return record !== undefined && isUuid(id) ? { record, id } : undefined
  }

  #mapOf(record: ChannelRecord): Map<string, ChannelRecord> {
    return record.param === null ? this.#fixed : this.#withId
  }
}
