import type { AnyPlugin } from 'busbar/sdk'
import type { Discovered } from './discovery.js'
import type { Manifest } from './manifest.js'
import type { PluginRun } from './plugin-run.js'
import type { PluginRecords } from './records.js'

/** Where a plugin is in its life. What an operator sees in `GET /api/plugins`. */
export const pluginStates = [
  'installed', 'blocked', 'misconfigured', 'migration-failed', 'starting', 'running', 'degraded',
  'retrying', 'stopping', 'stopped', 'failed', 'quarantined'
] as const
export type PluginStateName = (typeof pluginStates)[number]

export interface PluginState {
  readonly name: PluginStateName
  /** Why, where there is a why: what blocks it, what failed and what to do. */
  readonly reason: string | null
  readonly since: Date
}

export const isUp = (state: PluginState): boolean => state.name === 'running' || state.name === 'degraded'

/** The code of one version of a plugin and what it declared. Kept while it is off: its paths answer so. */
export interface Loaded {
  readonly definition: AnyPlugin
  readonly records: PluginRecords
}

/** What the kernel knows of one installed plugin. */
export interface PluginEntry {
  readonly id: string
  discovered: Discovered
  state: PluginState
  loaded: Loaded | undefined
  run: PluginRun | undefined
  /** How often in a row its start has failed. */
  failures: number
}

export const manifestOf = (entry: PluginEntry): Manifest | undefined =>
  'manifest' in entry.discovered ? entry.discovered.manifest : undefined

export const isEssential = (entry: PluginEntry): boolean =>
  entry.discovered.builtIn && (manifestOf(entry)?.essential ?? false)

export function setState (entry: PluginEntry, name: PluginStateName, reason: string | null, now: Date): void {
  if (entry.state.name === name && entry.state.reason === reason) return
  entry.state = { name, reason, since: now }
}
