import type { MigrationPlan } from '../database/migrations.js'
import type { Loaded, PluginEntry } from './plugin-entry.js'
import type { PluginChoice } from './plugin-store.js'

/** The schema a plugin owns. `x_` keeps third-party names away from those of the platform. */
export const schemaOf = (id: string, builtIn: boolean): string =>
  `${builtIn ? '' : 'x_'}${id.replaceAll('-', '_')}`

/** Names under which the kernel and its libraries keep things of their own. */
export const namesOfKernel: ReadonlySet<string> = new Set([
  'kernel',
  'access',
  'public',
  'graphile-worker',
  'information-schema',
  'pg-catalog',
  'constructor'
])

/** Brings schemas up to date, and answers which plugins' failed. Rejects with `E_STOPPING` when the signal aborts before that. */
export type Migrate = (
  plans: readonly MigrationPlan[],
  signal: AbortSignal
) => Promise<ReadonlyMap<string, Error>>

/** What one version of a plugin makes of its schema; nothing for one that keeps no data. */
export function planOf(
  { id, discovered: { builtIn } }: PluginEntry,
  loaded: Loaded | undefined,
  choice: PluginChoice | undefined
): MigrationPlan[] {
  const migrations = loaded?.definition.migrations ?? []
  if (migrations.length === 0) return []
  const schema = schemaOf(id, builtIn)
  return [
    {
      plugin: id,
      schema,
      migrations,
      isThirdParty: !builtIn,
      refusal: builtIn ? undefined : refusalOf(loaded, choice)
    }
  ]
}

/** Migrations are SQL over the whole database: the operator must have consented to that. */
function refusalOf(loaded: Loaded | undefined, choice: PluginChoice | undefined): string | undefined {
  if (loaded?.manifest.grants.includes('database') !== true)
    return 'it has migrations; add "database" to "grants" in its plugin.json'
  return choice?.grants.includes('database') === true
    ? undefined
    : 'it has migrations, and the database is not granted to it yet; disable it and enable it again to grant that'
}
