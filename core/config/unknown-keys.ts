import type { TSchema } from 'busbar/sdk'

/** The names that a schema's objects do not declare, by where they stand: `smtp/prot`, beside those that are. Open objects have none. */
export function unknownKeys(
  schema: TSchema | undefined,
  value: unknown,
  where = ''
): ReadonlyArray<{ readonly key: string; readonly known: readonly string[] }> {
  if (typeof value !== 'object' || value === null) return []
  const { properties, additionalProperties, patternProperties, items } = (schema ?? { properties: {} }) as {
    properties?: Readonly<Record<string, TSchema>>
    additionalProperties?: unknown
    patternProperties?: object
    items?: TSchema
  }
  if (Array.isArray(value))
    return items === undefined ? [] : value.flatMap((item, at) => unknownKeys(items, item, `${where}${at}/`))
  if (properties === undefined) return []
  const isOpen =
    patternProperties !== undefined || (additionalProperties !== undefined && additionalProperties !== false)
  return Object.entries(value).flatMap(([key, inner]) => {
    if (Object.hasOwn(properties, key)) return unknownKeys(properties[key], inner, `${where}${key}/`)
    return isOpen ? [] : [{ key: `${where}${key}`, known: Object.keys(properties) }]
  })
}
