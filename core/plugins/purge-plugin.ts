import type { PluginCatalog } from './catalog.js'
import { isEssential, type PluginEntry } from './plugin-entry.js'
import { namesOfKernel } from './plugin-schema.js'
import { pluginProblems } from './problems.js'
import type { Purge, PurgeReport } from './purge.js'

/** `entry` is undefined where nothing of the plugin is left but what it had stored. */
export interface Purged {
  readonly entry: PluginEntry | undefined
  readonly report: PurgeReport
}

/** Decides whether a plugin may be purged, and does it: it must be off, and something must be known of it. */
export async function purgePlugin(
  id: string,
  dryRun: boolean,
  catalog: PluginCatalog,
  purge: Purge
): Promise<Purged> {
  await catalog.discover()
  await catalog.readChoices()
  const entry = catalog.entries.get(id)
  if (entry === undefined && !(await purge.isRemembered(id))) throw pluginProblems.unknown({ id })
  if (entry !== undefined && isEssential(entry)) throw pluginProblems.essential({ id })
  if (entry !== undefined && (entry.run !== undefined || catalog.isWanted(entry)))
    throw pluginProblems.isOn({ id })
  const builtIn = entry?.discovered.builtIn ?? false
  // What is kept under such a name is the kernel's, whatever is in a folder of that name.
  if (namesOfKernel.has(id)) throw pluginProblems.unknown({ id })
  if (dryRun) return { entry, report: await purge.preview(id, builtIn) }
  const report = await purge.run(id, builtIn)
  await catalog.readChoices()
  if (entry !== undefined) catalog.describeIdle(entry)
  return { entry, report }
}
