import { fileURLToPath } from 'node:url'
import type { AnyPlugin } from 'busbar/sdk'
import { isPlugin } from '../../sdk/plugin.js'
import { faultOf } from '../frames/fault.js'

/** Why a plugin's code could not be loaded, in words for its author. */
export class LoadError extends Error {}

/** Runs a plugin's entry module and takes its definition. */
export async function importDefinition(url: string): Promise<AnyPlugin> {
  let module: { default?: unknown }
  try {
    module = (await import(url)) as { default?: unknown }
  } catch (error) {
    throw new LoadError(`its code failed while loading: ${faultOf(error).message}`, { cause: error })
  }
  if (!isPlugin(module.default))
    throw new LoadError(`${fileURLToPath(url)} has no default export made by definePlugin`)
  return module.default
}
