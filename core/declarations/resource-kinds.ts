import type { ResourceSpec } from 'busbar/sdk'
import type { ResourceRecord } from './records.js'

/** The project kind: where access to everything is decided. */
export const projectKind = 'project'

/** The job that removes resources of a plugin: the kernel's, under the plugin's name. */
export const teardownJob = 'teardown'

const kindName = /^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/
const longestKind = 40
/** It stands in SQL text as it is. */
const plainName = /^[a-z_][a-z0-9_]{0,62}$/

const isPlain = (name: unknown): name is string => typeof name === 'string' && plainName.test(name)
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** The path parameter that holds the id of one: `deployHookId` for `deploy_hook`. */
export const paramOf = (kind: string): string =>
  `${kind.replace(/[-_]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())}Id`

/** Whether a path parameter holds the id of one of a kind: `applicationId`, `parentApplicationId`. */
export function isParamOf(kind: string, param: string): boolean {
  const own = paramOf(kind)
  return param === own || param.endsWith(own.charAt(0).toUpperCase() + own.slice(1))
}

/** The kind as words of a sentence: `deploy hook`. */
export const wordsOf = (kind: string): string => kind.replace(/[-_]/g, ' ')

/** What is wrong with a declared kind of resource, whatever its type claims. */
export function resourceFaults(
  plugin: string,
  spec: ResourceSpec<object, object>,
  earlier: readonly ResourceRecord[]
): string[] {
  const { kind, table, parents, name, removal } = spec as { readonly [K in keyof typeof spec]: unknown }
  const faults: string[] = []
  if (typeof kind !== 'string' || !kindName.test(kind) || kind.length > longestKind)
    faults.push(`its kind is lower-case words joined by - or _, ${longestKind} characters at most`)
  if (!isPlain(table)) faults.push('table is the name of a table in the schema of the plugin, without that')
  const isColumnOfKind = ([parent, column]: [string, unknown]): boolean =>
    kindName.test(parent) && isPlain(column)
  if (parents !== undefined && !(isObject(parents) && Object.entries(parents).every(isColumnOfKind)))
    faults.push("parents names a column for each kind: { project: 'project_id' }")
  if (name !== undefined && !isPlain(name)) faults.push('name is the name of a column')
  if (removal !== undefined) faults.push(...removalFaults(plugin, removal))
  if (earlier.some(other => other.kind === kind)) faults.push('declared twice')
  return faults
}

function removalFaults(plugin: string, removal: unknown): string[] {
  if (!isObject(removal)) return ['removal is an object']
  const { teardown, turnsBy, run, deleted } = removal
  const faults: string[] = []
  const point = isObject(teardown) ? teardown.id : undefined
  if (teardown !== undefined && !(typeof point === 'string' && point.startsWith(`${plugin}.`)))
    faults.push(`teardown is an extension point of the plugin: extensionPoint('${plugin}.teardown')`)
  if (turnsBy !== undefined && !isPlain(turnsBy)) faults.push('turnsBy is the name of a column')
  for (const [part, value] of Object.entries({ run, deleted }))
    if (value !== undefined && typeof value !== 'function') faults.push(`${part} is not a function`)
  return faults
}

export function resourceRecord(plugin: string, spec: ResourceSpec<object, object>): ResourceRecord {
  const { kind, table, parents = {}, name, removal } = spec
  return Object.freeze({
    plugin,
    kind,
    table,
    parents: Object.freeze({ ...parents }),
    name,
    removal:
      removal &&
      Object.freeze({
        teardown: removal.teardown,
        turnsBy: removal.turnsBy,
        run: removal.run,
        deleted: removal.deleted
      })
  })
}

/** Kinds that two plugins declare: which of them is meant would be ambiguous. */
export const kindConflicts = (
  candidate: readonly ResourceRecord[],
  others: readonly ResourceRecord[]
): string[] =>
  candidate.flatMap(({ kind, plugin }) => {
    const other = others.find(one => one.kind === kind && one.plugin !== plugin)
    return other === undefined ? [] : [`the kind "${kind}" is already declared by "${other.plugin}"`]
  })
