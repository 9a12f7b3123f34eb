import type { Static, TObject, TProperties, TSchema } from '@sinclair/typebox'
import { described, named } from './described-schema.js'
import { Type } from './typebox.js'

export { Type, type Static, type TSchema }

/** The form of an id everywhere: lowercase and hyphenated. */
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** True for the form that ids have in paths, queries and bodies; without it PostgreSQL would refuse the statement. */
export const isUuid = (text: string): boolean => uuidPattern.test(text)

/** True for the schema that `uuid` makes, whatever is said of it. */
export const isUuidSchema = ({ pattern }: Readonly<Record<string, unknown>>): boolean =>
  pattern === uuidPattern.source

/** A UUID in lowercase hyphenated form. */
export const uuid = () => Type.String({ pattern: uuidPattern.source, format: 'uuid' })

/** An ISO 8601 instant. A `Date` in an answer is written as one. */
export const timestamp = () => Type.Unsafe<Date | string>({ type: 'string', format: 'date-time' })

/** `T` or null, as `type: [T, 'null']`: half the cost of an `anyOf` when serialising. */
export const nullable = <T extends TSchema>(schema: T) =>
  Type.Unsafe<Static<T> | null>(
    typeof schema.type === 'string'
      ? {
          ...schema,
          type: [schema.type, 'null'],
          ...(Array.isArray(schema.enum) && { enum: [...schema.enum, null] })
        }
      : Type.Union([schema, Type.Null()])
  )

/** A string of bounded length without NUL, which PostgreSQL cannot store. */
export const text = (limits: { min?: number; max: number }) =>
  Type.String({
    minLength: limits.min ?? 0,
    maxLength: limits.max,
    pattern: '^[^\\u0000]*$'
  })

/** One of the given strings. */
export const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values] })

/** An object. Keys that are not named are ignored in a body and left out of an answer. */
export const object = <T extends TProperties>(properties: T): TObject<T> =>
  Type.Object(properties, { additionalProperties: false })

export const list = <T extends TSchema>(items: T) => Type.Array(items)
export const maybe = Type.Optional
export const statusResponse = named(
  'Status',
  object({ status: described(Type.String(), 'What has been done, in a word or two: `deleted`, `updated`.') }),
  { description: 'That it has been done.' }
)

/** The query of a list: strings, because a bad value falls back to the default instead of failing. */
export const pagingQuery = {
  limit: described(
    Type.Optional(Type.String({ examples: ['20'] })),
    'How many rows at most, from 1 to 200; 50 unless given, and for what is no such number.'
  ),
  offset: described(
    Type.Optional(Type.String({ examples: ['40'] })),
    'How many rows to leave out before the first; 0 unless given, and for what is no whole number.'
  )
}

export interface Page {
  readonly limit: number
  readonly offset: number
}

/** No list has more. */
const mostRows = 999_999_999

/** For `readPage` of a list without a page size of its own: everything, unless the client narrows it. */
export const wholeList = Object.freeze({ fallback: mostRows, max: mostRows })

/** `limit` of 1 to `max` (default `fallback`) and `offset` of 0 or more; a bad value is the default. */
export function readPage(
  query: { limit?: string; offset?: string },
  limits: { fallback: number; max: number } = { fallback: 50, max: 200 }
): Page {
  const limit = wholeNumber(query.limit)
  const offset = wholeNumber(query.offset)
  return {
    limit: limit !== undefined && limit >= 1 && limit <= limits.max ? limit : limits.fallback,
    // Behind the end of every list: one that is larger than PostgreSQL takes must not lead back to its beginning.
    offset: Math.min(offset ?? 0, mostRows)
  }
}

const wholeNumber = (value: string | undefined): number | undefined =>
  value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined
