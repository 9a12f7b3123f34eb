import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyPlugin } from 'busbar/sdk'
import { withDeadline } from '../clock/waits.js'
import { notificationConflicts } from '../declarations/notification-kinds.js'
import { record } from '../declarations/recorder.js'
import type { PluginRecords } from '../declarations/records.js'
import { kindConflicts } from '../declarations/resource-kinds.js'
import { schemaConflicts } from '../declarations/schema-components.js'
import { type Additions, additionsOfModule } from '../frames/additions.js'
import { noteCode } from '../frames/code-owners.js'
import { callPlugin } from '../frames/fault.js'
import { inBeginning } from '../frames/frames.js'
import { findConflicts } from '../http/route-table.js'
import { importDefinition, LoadError } from './definition.js'
import type { Discovered } from './discovery.js'
import type { Manifest } from './manifest.js'
import type { Loaded } from './plugin-entry.js'
import { rehearse } from './rehearsal.js'

const importLimitMs = 15_000
const bundleLimitMs = 30_000
/** Besides the one that is loaded. */
const keptBundles = 5

interface LoadOptions {
  /** The definition of a plugin that is given as a value. */
  readonly inline: AnyPlugin | undefined
  /** Where bundles of third-party plugins are kept. */
  readonly cache: string
  /** What all other plugins declare. */
  readonly others: readonly PluginRecords[]
}

/**
 * Reads a plugin's code and records what it declares. A built-in one is part of the release and imported
 * as it is; a third-party one is bundled and rehearsed first.
 */
export async function loadPlugin(
  { id, directory, builtIn }: Discovered,
  manifest: Manifest,
  { inline, cache, others }: LoadOptions
): Promise<Loaded> {
  const { definition, additions } =
    inline !== undefined
      ? { definition: inline }
      : builtIn
        ? { definition: await importInFrame(id, await entryOf(directory, manifest.main)) }
        : await loadThirdParty(directory, manifest, cache)
  const resources = others.flatMap(other => other.resources)
  const kinds = resources.map(({ kind }) => kind)
  const records = await callPlugin(id, () => record(definition, { id, builtIn, kinds }))
  const conflicts = [
    ...findConflicts(
      records.routes,
      others.flatMap(other => other.routes)
    ),
    ...kindConflicts(records.resources, resources),
    ...notificationConflicts(
      records.notifications,
      others.flatMap(other => other.notifications)
    ),
    ...schemaConflicts(records, others)
  ]
  if (conflicts.length > 0) throw new LoadError(conflicts.join('; '))
  return { manifest, definition, records, ...(additions && { additions }) }
}

/** What the module leaves behind, a timer for one, is the plugin's. One that does not end is not waited for. */
async function importInFrame(id: string, file: string, additions?: Additions): Promise<AnyPlugin> {
  const load = async (): Promise<AnyPlugin> => await importDefinition(pathToFileURL(file).href)
  return await withDeadline(
    callPlugin(id, additions === undefined ? load : () => inBeginning(id, additions, load)),
    importLimitMs,
    'loading its code'
  )
}

async function loadThirdParty(
  directory: string,
  manifest: Manifest,
  cache: string
): Promise<Pick<Loaded, 'definition' | 'additions'>> {
  const file = await bundleThirdParty(directory, manifest, cache)
  await rehearse(manifest.id, file)
  for (const folder of [dirname(file), directory]) noteCode(folder, manifest.id)
  const additions = additionsOfModule(file)
  // A run holds them as long as it lasts.
  additions.hold()
  try {
    return { definition: await importInFrame(manifest.id, file, additions), additions }
  } finally {
    additions.release()
  }
}

/**
 * Bundles a third-party plugin into one file named by its content, so that a reload runs the changed
 * code (Node never forgets a module) and TypeScript needs no build step. `busbar/…` stays outside the
 * bundle: it is the running platform's own.
 */
async function bundleThirdParty(directory: string, { id, main }: Manifest, cache: string): Promise<string> {
  // Loaded here: a platform without third-party plugins never needs it.
  const { build } = await import('esbuild')
  const building = build({
    entryPoints: [await entryOf(directory, main)],
    bundle: true,
    write: false,
    // Where it will lie: the source map names the plugin's files from there, and so do the stacks of its errors.
    outfile: join(cache, id, 'bundle.mjs'),
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    logLevel: 'silent',
    banner: {
      js: "import { createRequire as busbarRequire } from 'node:module'; const require = busbarRequire(import.meta['url']);"
    },
    plugins: [
      {
        name: 'busbar',
        setup(esbuild) {
          esbuild.onResolve({ filter: /^busbar\// }, ({ path }) => ({
            path: import.meta.resolve(path),
            external: true
          }))
          esbuild.onResolve({ filter: /\.node$/ }, ({ path, resolveDir }) => ({
            path: join(resolveDir, path),
            external: true
          }))
        }
      }
    ]
  }).catch(
    (error: {
      errors?: Array<{ text: string; location: { file: string; line: number } | null }>
      message: string
    }) => {
      const faults = error.errors?.map(({ text, location }) =>
        location === null ? text : `${location.file}:${location.line}: ${text}`
      )
      throw new LoadError(`its code does not compile: ${faults?.join('; ') ?? error.message}`)
    }
  )
  // What it imports may be no file.
  const result = await withDeadline(building, bundleLimitMs, 'bundling its code')
  const code = result.outputFiles[0]?.contents ?? new Uint8Array()
  const folder = join(cache, id)
  const file = join(folder, `${createHash('sha256').update(code).digest('hex').slice(0, 16)}.mjs`)
  await mkdir(folder, { recursive: true })
  // Written aside and renamed: another load of the same version may be under way, in this process or in another one,
  // which has the same id where each has a container of its own.
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, code)
  await rename(draft, file)
  await removeOthers(folder, file)
  return file
}

async function entryOf(directory: string, main: string): Promise<string> {
  const candidates = ['.js', '.mjs', '.ts'].map(ending => join(directory, main + ending))
  for (const file of candidates) {
    if (
      await stat(file).then(
        found => found.isFile(),
        () => false
      )
    )
      return file
  }
  throw new LoadError(`there is no ${main}.js or ${main}.ts in ${directory}`)
}

/**
 * Keeps the newest few: a process that started a moment ago may still import the previous one. What a process that was
 * killed had begun to write goes in time, too.
 */
async function removeOthers(folder: string, current: string): Promise<void> {
  const files = (await readdir(folder)).map(name => join(folder, name)).filter(file => file !== current)
  const written = await Promise.all(
    files.map(async file => ({
      file,
      // Another process may have removed it.
      at: await stat(file).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0
      )
    }))
  )
  const oldest = written.sort((a, b) => b.at - a.at).slice(keptBundles)
  await Promise.all(
    oldest.map(async ({ file }) => {
      await rm(file, { force: true })
    })
  )
}
