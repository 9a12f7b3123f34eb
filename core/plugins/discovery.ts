import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Manifest, readManifest } from './manifest.js'
import { namesOfKernel } from './plugin-schema.js'

/** A folder that holds plugins, one in each sub-folder with a `plugin.json`. */
export interface PluginRoot {
  readonly directory: string
  /** Built-in plugins are part of the release: granted what they ask for and on unless turned off. */
  readonly builtIn: boolean
  /** Only this sub-folder: a plugin under test. */
  readonly only?: string
}

export type Discovered =
  | {
      readonly id: string
      readonly directory: string
      readonly builtIn: boolean
      readonly manifest: Manifest
    }
  | { readonly id: string; readonly directory: string; readonly builtIn: boolean; readonly fault: string }

/** Reads the manifests in all roots. A faulty one is reported and does not stop the others; no code runs. */
export async function discover(roots: readonly PluginRoot[]): Promise<Discovered[]> {
  const found = (await Promise.all(roots.map(readRoot))).flat()
  const byId = new Map<string, Discovered>()
  for (const plugin of found) {
    const earlier = byId.get(plugin.id)
    if (earlier === undefined) byId.set(plugin.id, plugin)
    else if (!plugin.builtIn) {
      // A third-party folder must never take the place of a built-in one.
      const id = `${plugin.id} in ${plugin.directory}`
      byId.set(id, {
        id,
        directory: plugin.directory,
        builtIn: false,
        fault: `the id "${plugin.id}" is already taken by ${earlier.directory}`
      })
    }
  }
  return [...byId.values()]
}

async function readRoot({ directory, builtIn, only }: PluginRoot): Promise<Discovered[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    if (builtIn) throw error
    return error
  })
  // One folder that cannot be read does not stop the others: it is listed with its fault.
  if (entries instanceof Error)
    return [
      { id: directory, directory, builtIn, fault: `the folder of plugins cannot be read: ${entries.message}` }
    ]
  const folders = entries
    .filter(entry => entry.isDirectory() || entry.isSymbolicLink())
    .filter(
      entry =>
        !entry.name.startsWith('.') &&
        entry.name !== 'node_modules' &&
        (only === undefined || entry.name === only)
    )
  const plugins = await Promise.all(
    folders.map(async ({ name }): Promise<Discovered | undefined> => {
      const folder = join(directory, name)
      if (!builtIn && namesOfKernel.has(name))
        return {
          id: name,
          directory: folder,
          builtIn,
          fault: `the id "${name}" is the kernel's: take another`
        }
      try {
        return { id: name, directory: folder, builtIn, manifest: await readManifest(folder, name) }
      } catch (error) {
        if (
          (error as NodeJS.ErrnoException).code === 'ENOENT' ||
          (error as NodeJS.ErrnoException).code === 'ENOTDIR'
        )
          return undefined
        return { id: name, directory: folder, builtIn, fault: (error as Error).message }
      }
    })
  )
  return plugins.filter(plugin => plugin !== undefined)
}
