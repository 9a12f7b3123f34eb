import type { Log } from 'busbar/sdk'
import type { Variables } from '../config/environment.js'
import { pluginConfig } from '../config/plugin-config.js'
import type { PluginKind } from '../database/postgres.js'
import { faultOf } from '../frames/fault.js'
import { inFrame } from '../frames/frames.js'
import type { PluginServices } from '../services/container.js'
import { isEssential, type Loaded, type PluginEntry } from './plugin-entry.js'
import type { RunOptions } from './plugin-run.js'
import type { PluginChoice } from './plugin-store.js'
import { pluginProblems } from './problems.js'

export interface RunParts extends Pick<RunOptions, 'http' | 'registries' | 'closing'> {
  readonly log: Log
  /** The environment, which sets some of the plugins' settings. */
  readonly variables: Variables
  readonly kernelServices: (id: string, kind: PluginKind) => PluginServices
  /** Throws when a third-party plugin has made in the database what would run in statements of others. */
  readonly checkCode: (id: string) => Promise<void>
  /** Of a third-party plugin that has ended: what it has left under way in the database. */
  readonly cutOffDatabase: (id: string) => void
}

/** Throws a 400 that names what is wrong with settings, as far as the code that would read them is known. */
export function checkSettings(
  { id, loaded }: PluginEntry,
  config: Readonly<Record<string, unknown>>,
  variables: Variables
): void {
  if (loaded === undefined) return
  try {
    inFrame(id, () => pluginConfig(loaded.definition, config, variables))
  } catch (error) {
    throw pluginProblems.config({ id, reason: faultOf(error).message })
  }
}

/** With what a version of a plugin runs: what its manifest asks for, as far as the operator has consented, and the operator's settings. */
export function runOptions(
  entry: PluginEntry,
  loaded: Loaded | undefined,
  choice: PluginChoice | undefined,
  parts: RunParts
): RunOptions {
  const {
    id,
    discovered: { builtIn }
  } = entry
  if (loaded === undefined) throw new Error(`the plugin "${id}" is not loaded`)
  const { manifest, definition } = loaded
  const { http, registries, closing, log, kernelServices, checkCode, cutOffDatabase, variables } = parts
  return {
    ...loaded,
    http,
    registries,
    closing,
    onStarted: async () => {
      if (!builtIn) await checkCode(id)
    },
    onEnded: () => {
      if (!builtIn) cutOffDatabase(id)
    },
    log: log.child({ plugin: id }),
    config: inFrame(id, () => pluginConfig(definition, choice?.config ?? {}, variables)),
    container: {
      plugin: id,
      builtIn,
      needs: definition.needs ?? {},
      asked: manifest.grants,
      grants: builtIn
        ? manifest.grants
        : (choice?.grants.filter(grant => manifest.grants.includes(grant)) ?? []),
      reachable: new Set([id, ...Object.keys(manifest.requires), ...Object.keys(manifest.optional)]),
      registry: registries.registry,
      kernelServices: kernelServices(
        id,
        isEssential(entry) ? 'essential' : builtIn ? 'built-in' : 'third-party'
      )
    }
  }
}
