import type { Static, TSchema } from '@sinclair/typebox'

// A symbol is seen by no validator and no serialiser, and travels with the copies that are made of a schema.
const nameKey: unique symbol = Symbol.for('busbar.schema.name')

/** A schema as it was named, whatever became of its copies. */
export interface SchemaName {
  readonly name: string
  readonly schema: TSchema
}

/** What the description of the API says of a named schema as a whole. */
interface Words<T> {
  readonly description?: string
  /** Values as a client may send them; each must pass the schema. */
  readonly examples?: readonly T[]
}

/**
 * The same schema under a name: the description of the API has it once, in `components.schemas`, and refers to it from
 * wherever it occurs. Capitalised, `A-Z a-z 0-9`; of a third-party plugin the description puts the plugin's id before it. One
 * name is for one schema: a plugin that uses it for two is refused, and so is one that uses a schema with required fields
 * in bodies and in answers, as bodies mark none.
 *
 *     const createNote = named('CreateNote', object({ title: text({ max: 100 }) }), {
 *       description: 'A note that is to be kept.',
 *       examples: [{ title: 'Milk' }]
 *     })
 */
export function named<T extends TSchema>(name: string, schema: T, words: Words<Static<T>> = {}): T {
  const whole = { ...schema, ...words }
  return { ...whole, [nameKey]: Object.freeze({ name, schema: whole }) }
}

/**
 * The same schema with what a client's author must know of it: what it is, its unit, what leaving it out means, what it
 * changes. It is shown in the description of the API, and decides nothing.
 */
export const described = <T extends TSchema>(schema: T, description: string): T => ({
  ...schema,
  description
})

/**
 * The same schema with the values that the plugin takes, where it refuses others itself, with a sentence of its own, or finds
 * nothing by them: the description lists them as an `enum`, the validator does not look.
 */
export const withValues = <T extends TSchema>(schema: T, values: readonly unknown[]): T => ({
  ...schema,
  [valuesKeyword]: values
})
/** The keyword of a schema that holds them. */
export const valuesKeyword = 'x-values'

const keysOf = (value: unknown): string => Object.keys(value ?? {}).join()

/** The name of a schema. What was picked from a named one, or made of its fields optional, has none. */
export function schemaName(schema: object): SchemaName | undefined {
  const named = (schema as { readonly [nameKey]?: SchemaName })[nameKey]
  if (named === undefined) return undefined
  const { properties, required } = schema as TSchema
  const isWhole =
    keysOf(properties) === keysOf(named.schema.properties) &&
    String(required ?? '') === String(named.schema.required ?? '')
  return isWhole ? named : undefined
}
