import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Contract, readContract } from './contract.js'
import { type Manifest, readManifest } from './manifest.js'
import { namesOfKernel } from './plugin-schema.js'

/** A folder that holds plugins and contracts: one in each sub-folder with a `plugin.json` or a `contract.json`. */
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

/** A folder with a `contract.json`. */
interface DiscoveredContract {
  readonly id: string
  readonly directory: string
  readonly builtIn: boolean
  readonly contract: Contract
}

interface Discovery {
  readonly plugins: readonly Discovered[]
  readonly contracts: readonly Contract[]
}

/** Reads the manifests in all roots. A faulty one is reported and does not stop the others; no code runs. */
export async function discover(roots: readonly PluginRoot[]): Promise<Discovery> {
  const found = (await Promise.all(roots.map(readRoot))).flat()
  const byId = new Map<string, Discovered | DiscoveredContract>()
  for (const one of found) {
    const earlier = byId.get(one.id)
    if (earlier === undefined) byId.set(one.id, one)
    else if (!one.builtIn) {
      // A third-party folder must never take the place of a built-in one.
      const id = `${one.id} in ${one.directory}`
      byId.set(id, {
        id,
        directory: one.directory,
        builtIn: false,
        fault: `the id "${one.id}" is already taken by ${earlier.directory}`
      })
    }
  }
  const all = [...byId.values()]
  return {
    plugins: all.flatMap(one => ('contract' in one ? [] : [one])),
    contracts: all.flatMap(one => ('contract' in one ? [one.contract] : []))
  }
}

async function readRoot({
  directory,
  builtIn,
  only
}: PluginRoot): Promise<Array<Discovered | DiscoveredContract>> {
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
  const read = await Promise.all(
    folders.map(async ({ name }): Promise<Discovered | DiscoveredContract | undefined> => {
      const folder = { id: name, directory: join(directory, name), builtIn }
      if (!builtIn && namesOfKernel.has(name))
        return { ...folder, fault: `the id "${name}" is the kernel's: take another` }
      try {
        const manifest = await unlessAbsent(readManifest(folder.directory, name))
        if (manifest !== undefined) return { ...folder, manifest }
        const contract = await unlessAbsent(readContract(folder.directory, name))
        return contract && { ...folder, contract }
      } catch (error) {
        return { ...folder, fault: (error as Error).message }
      }
    })
  )
  return read.filter(one => one !== undefined)
}

const unlessAbsent = async <T>(reading: Promise<T>): Promise<T | undefined> =>
  await reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
