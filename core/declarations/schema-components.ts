import type { TSchema } from 'busbar/sdk'
import { type SchemaName, schemaName, valuesKeyword } from '../../sdk/described-schema.js'
import type { DescribedChannel } from './asyncapi.js'
import type { DescribedRoute } from './openapi.js'

type Json = Record<string, unknown>
/** Bodies mark no field as required, so the same schema reads otherwise in them. */
type SchemaUse = 'answer' | 'body'
/** Of a plugin, what has schemas that are described. */
interface Described {
  readonly routes: readonly DescribedRoute[]
  readonly channels?: readonly DescribedChannel[]
}

const componentName = /^[A-Z][A-Za-z0-9]{0,99}$/
/** What the description itself declares. */
const taken: ReadonlySet<string> = new Set(['Error'])

/** Their values are data or names, not schemas. */
const dataKeywords: ReadonlySet<string> = new Set(['examples', 'default', 'const', 'enum'])
const mapKeywords: ReadonlySet<string> = new Set(['properties', 'patternProperties'])

/** What names of this route's schemas begin with: third-party plugins cannot take each other's, nor the platform's. */
export const namePrefix = ({ plugin, url }: Pick<DescribedRoute, 'plugin' | 'url'>): string =>
  /^\/api\/(ws\/)?x\//.test(url) ? `${plugin}.` : ''

/** And those of a channel. */
export const channelNamePrefix = ({ plugin, name }: Pick<DescribedChannel, 'plugin' | 'name'>): string =>
  name.startsWith('x:') ? `${plugin}.` : ''

/** Schemas as a description shows them; those with names are collected, and referred to. */
export class SchemaComponents {
  readonly schemas: Json = {}

  describe(schema: unknown, use: SchemaUse, prefix: string): unknown {
    if (Array.isArray(schema)) return schema.map(one => this.describe(one, use, prefix))
    if (typeof schema !== 'object' || schema === null) return schema
    const name = schemaName(schema)
    return name === undefined
      ? this.#whole(schema, use, prefix)
      : this.#reference(schema as TSchema, name, use, prefix)
  }

  #reference(schema: TSchema, { name, schema: original }: SchemaName, use: SchemaUse, prefix: string): Json {
    const key = prefix + name
    if (!Object.hasOwn(this.schemas, key)) {
      this.schemas[key] = {}
      this.schemas[key] = this.#whole(original, use, prefix)
    }
    const reference = { $ref: `#/components/schemas/${key}` }
    const isNullable = takesNull(schema) && !takesNull(original)
    return {
      ...(isNullable ? { anyOf: [reference, { type: 'null' }] } : reference),
      ...(schema.description === original.description ? {} : { description: schema.description })
    }
  }

  /**
   * The schema itself. Of a body `required` becomes `x-required`, as the specification asks, and it is open: fields that it
   * does not name are ignored. By `additionalProperties: false`, which has the validator leave them out, a reader would
   * take them for refused.
   */
  #whole(schema: object, use: SchemaUse, prefix: string): Json {
    const entries = Object.entries(schema).flatMap(([key, value]): Array<[string, unknown]> => {
      if (use === 'body' && key === 'additionalProperties' && value === false) return []
      if (use === 'body' && key === 'required' && Array.isArray(value)) return [['x-required', value]]
      if (key === valuesKeyword) return [['enum', value]]
      if (dataKeywords.has(key)) return [[key, value]]
      if (mapKeywords.has(key) && typeof value === 'object' && value !== null) {
        const inner = Object.entries(value).map(([name, one]) => [name, this.describe(one, use, prefix)])
        return [[key, Object.fromEntries(inner)]]
      }
      return [[key, this.describe(value, use, prefix)]]
    })
    return Object.fromEntries(entries)
  }
}

const takesNull = ({ type }: TSchema): boolean => [type].flat().includes('null')

interface Occurrence {
  readonly schema: TSchema
  readonly use: SchemaUse
  readonly where: string
  readonly prefix: string
}

// By the records, which do not change: each plugin is compared with all others.
const found = new WeakMap<Described, ReadonlyMap<string, readonly Occurrence[]>>()

/** The named schemas of a plugin by the keys of their components; those of one key that differ in object or use. */
function occurrences(described: Described): ReadonlyMap<string, readonly Occurrence[]> {
  const known = found.get(described)
  if (known !== undefined) return known
  const all = new Map<string, Occurrence[]>()
  const seen = { answer: new Set<object>(), body: new Set<object>() }
  const collect = (value: unknown, use: SchemaUse, where: string, prefix: string): void => {
    if (typeof value !== 'object' || value === null || seen[use].has(value)) return
    seen[use].add(value)
    const name = schemaName(value)
    if (name !== undefined) {
      const list = all.get(prefix + name.name) ?? []
      if (!list.some(other => other.schema === name.schema && other.use === use))
        list.push({ schema: name.schema, use, where, prefix })
      all.set(prefix + name.name, list)
    }
    for (const inner of Object.values(value)) collect(inner, use, where, prefix)
  }
  for (const route of described.routes) {
    const { query, body, response, params } = route.schema
    const where = `${route.method} ${route.url}`
    collect([query, body], 'body', where, namePrefix(route))
    collect([params, Object.values(response ?? {})], 'answer', where, namePrefix(route))
  }
  for (const channel of described.channels ?? [])
    collect(Object.values(channel.events), 'answer', `channel ${channel.name}`, channelNamePrefix(channel))
  found.set(described, all)
  return all
}

const textOf = ({ schema, use, prefix }: Occurrence): string => {
  const { description, ...rest } = schema
  return JSON.stringify([description, new SchemaComponents().describe(rest, use, prefix)])
}

const clash = (key: string, one: Occurrence, other: Occurrence): string[] =>
  (one.schema === other.schema && one.use === other.use) || textOf(one) === textOf(other)
    ? []
    : one.schema === other.schema
      ? [
          `the schema "${key}" is an answer in one place and a body in another (${one.where}, ${other.where}), which differ: a body may leave fields out and have others besides; declare one for each, as "${key}" and "${key}Body"`
        ]
      : [
          `the schema "${key}" of ${one.where} (${one.use}) is not the one of ${other.where} (${other.use}): name one of them otherwise`
        ]

/** What is wrong with the names of a plugin's own schemas. */
export function schemaNameFaults(described: Described): string[] {
  return [...occurrences(described)].flatMap(([key, [first, ...others]]) => {
    if (first === undefined) return []
    const name = key.slice(first.prefix.length)
    return [
      ...(componentName.test(name)
        ? []
        : [`${first.where}: "${name}" is no name of a schema: a capital letter, then letters and digits`]),
      ...(taken.has(key) ? [`${first.where}: the name "${name}" of a schema is the platform's own`] : []),
      ...others.flatMap(other => clash(key, other, first))
    ]
  })
}

/** Names under which a plugin and others describe different schemas. */
export function schemaConflicts(described: Described, others: readonly Described[]): string[] {
  return [...occurrences(described)].flatMap(([key, [mine]]) =>
    others.flatMap(other => {
      const [theirs] = occurrences(other).get(key) ?? []
      return mine === undefined || theirs === undefined ? [] : clash(key, mine, theirs)
    })
  )
}
