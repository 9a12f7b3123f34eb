import type { Clock, Database } from 'busbar/sdk'

/** What the operator wants of a plugin. */
export interface PluginChoice {
  readonly id: string
  readonly desired: 'on' | 'off'
  readonly grants: readonly string[]
  readonly config: Readonly<Record<string, unknown>>
  /** Why it is kept off although it is wanted; null when it is not. */
  readonly quarantined: string | null
  /** The plugin whose cascade turned this one off; null when this one itself was turned off. */
  readonly off_with: string | null
  /** When it was made, also where it is the same again. */
  readonly updated_at?: Date
}

type Change = Partial<Omit<PluginChoice, 'id'>>

export class PluginStore {
  constructor(
    readonly database: Database,
    readonly clock: Clock
  ) {}

  async all(): Promise<ReadonlyMap<string, PluginChoice>> {
    const rows = (await this.database
      .table<PluginChoice>('plugin')
      .select('id', 'desired', 'grants', 'config', 'quarantined', 'off_with', 'updated_at')) as PluginChoice[]
    return new Map(rows.map(row => [row.id, row]))
  }

  /** In one statement: `along` go off because `id` does. */
  async turnOff(id: string, along: readonly string[]): Promise<void> {
    const row = (one: string, off_with: string | null): object => ({
      id: one,
      desired: 'off',
      off_with,
      updated_at: this.clock.now()
    })
    await this.database
      .table('plugin')
      .insert([row(id, null), ...along.map(one => row(one, id))])
      .onConflict('id')
      .merge(['desired', 'off_with', 'updated_at'])
  }

  /** Writes several choices in one statement: a cascade is one decision. */
  async change(ids: readonly string[], change: Change & { desired: 'on' | 'off' }): Promise<void> {
    if (ids.length === 0) return
    const { grants, config, ...plain } = change
    const columns = {
      ...plain,
      ...(grants === undefined ? {} : { grants: JSON.stringify(grants) }),
      ...(config === undefined ? {} : { config: JSON.stringify(config) }),
      updated_at: this.clock.now()
    }
    await this.database
      .table('plugin')
      .insert(ids.map(id => ({ id, ...columns })))
      .onConflict('id')
      .merge(Object.keys(columns))
  }
}
