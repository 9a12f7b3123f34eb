import type { TSchema } from 'busbar/sdk'

/** Whether null is a value of the schema. */
export function takesNull(schema: TSchema): boolean {
  const {
    anyOf,
    oneOf,
    allOf,
    type,
    const: only,
    enum: among,
    nullable
  } = schema as Readonly<Record<string, unknown>>
  if (nullable === true) return true
  if (Array.isArray(anyOf ?? oneOf)) return ((anyOf ?? oneOf) as TSchema[]).some(takesNull)
  if (Array.isArray(allOf)) return (allOf as TSchema[]).every(takesNull)
  if ('const' in schema) return only === null
  if (Array.isArray(among)) return among.includes(null)
  return type === undefined || [type].flat().includes('null')
}

export const missingValue = (where: string, value: unknown): Error =>
  new TypeError(`${where} is ${String(value)}, and its schema declares a value`)

/**
 * Throws at the first null or undefined where the schema declares a value. The writer of JSON would make
 * an empty text, a zero or an empty object of it. Alternatives are left to the writer.
 */
export function refuseMissing(schema: TSchema, value: unknown, where = 'the answer'): void {
  if (value === undefined || value === null) {
    if (value === undefined || !takesNull(schema)) throw missingValue(where, value)
    return
  }
  const {
    properties = {},
    required = [],
    items
  } = schema as { properties?: Record<string, TSchema>; required?: string[]; items?: TSchema }
  if (Array.isArray(value)) {
    if (items !== undefined && !Array.isArray(items))
      value.forEach((item, at) => {
        refuseMissing(items, item, `${where}/${at}`)
      })
    return
  }
  if (typeof value !== 'object') return
  for (const [name, inner] of Object.entries(properties)) {
    const held = (value as Record<string, unknown>)[name]
    if (held !== undefined || required.includes(name)) refuseMissing(inner, held, `${where}/${name}`)
  }
}
