import { type AnyPlugin, cutMark, cutText } from 'busbar/sdk'
import type { PluginRecords } from '../declarations/records.js'
import type { Additions } from '../frames/additions.js'
import type { TableEntry } from '../http/route-table.js'
import type { Discovered } from './discovery.js'
import type { Manifest } from './manifest.js'
import type { PluginRun } from './plugin-run.js'

/** Where a plugin is in its life. What an operator sees in `GET /api/plugins`. */
export const pluginStates = [
  'installed',
  'blocked',
  'misconfigured',
  'migration-failed',
  'starting',
  'running',
  'degraded',
  'retrying',
  'stopping',
  'stopped',
  'failed',
  'quarantined'
] as const
export type PluginStateName = (typeof pluginStates)[number]

interface PluginState {
  readonly name: PluginStateName
  /** Why, where there is a why: what blocks it, what failed and what to do. */
  readonly reason: string | null
  readonly since: Date
}

export const isUp = (state: PluginState): boolean => state.name === 'running' || state.name === 'degraded'

/** The code of one version of a plugin and what it declared. Kept while it is off: its paths answer so. */
export interface Loaded {
  readonly manifest: Manifest
  readonly definition: AnyPlugin
  readonly records: PluginRecords
  /** What its module has put where it is everybody's; of third-party code. */
  readonly additions?: Additions
}

/** What the kernel knows of one installed plugin. */
export interface PluginEntry {
  readonly id: string
  discovered: Discovered
  state: PluginState
  loaded: Loaded | undefined
  run: PluginRun | undefined
  /** An error that was not caught, or another fault, while it started, or while a new version did beside it: of which of them cannot be told. */
  early?: string | undefined
  /** A new version is being started beside the one that runs. */
  isBeingReplaced?: boolean
  /** How often in a row its start has failed. */
  failures: number
}

/** What is in the folder now: the next version, where one is running. */
export const offeredManifest = ({ discovered }: PluginEntry): Manifest | undefined =>
  'manifest' in discovered ? discovered.manifest : undefined

/** That of the version which runs, or would. */
export const manifestOf = (entry: PluginEntry): Manifest | undefined =>
  entry.run?.options.manifest ?? offeredManifest(entry)

export const isEssential = (entry: PluginEntry): boolean =>
  entry.discovered.builtIn && (manifestOf(entry)?.essential ?? false)

/** Third-party code that runs may take the process down some time after its start. */
export const isWatched = ({ run, discovered }: PluginEntry): boolean =>
  run !== undefined && !discovered.builtIn

/** Every list of plugins carries them. */
const longestReason = 2_000
const shortened = (reason: string): string =>
  reason.length > longestReason ? cutText(reason, longestReason - cutMark.length) : reason

export function setState(entry: PluginEntry, name: PluginStateName, reason: string | null, now: Date): void {
  const short = reason === null ? null : shortened(reason)
  if (entry.state.name === name && entry.state.reason === short) return
  entry.state = { name, reason: short, since: now }
}

/** Throws when one that the platform does not run without is not up. */
export function requireEssentials(entries: Iterable<PluginEntry>): void {
  const down = [...entries].filter(entry => isEssential(entry) && !isUp(entry.state))
  if (down.length > 0)
    throw new Error(
      `the platform cannot start without ${down.map(({ id, state }) => `"${id}" (${state.reason ?? state.name})`).join(', ')}`
    )
}

/** The routes of all, also of those that do not run. */
export const routesOf = (entries: Iterable<PluginEntry>): TableEntry[] =>
  [...entries].flatMap(({ loaded, run }) =>
    (loaded?.records.routes ?? []).map(record => ({ record, instance: run?.instance }))
  )

/** What a plugin has done that it should not; its health check does not undo that. */
export function noteFault(entry: PluginEntry | undefined, what: string, now: Date): void {
  if (entry === undefined) return
  const reason = shortened(what)
  if (entry.run !== undefined) entry.run.uncaughtError = reason
  if (entry.state.name === 'starting' || entry.isBeingReplaced === true) entry.early = reason
  if (isUp(entry.state)) setState(entry, 'degraded', reason, now)
}
