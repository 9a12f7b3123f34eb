import type { TSchema } from 'busbar/sdk'
import { explainFault } from '../schemas/schema-fault.js'
import { validatorOf } from '../schemas/schemas.js'
import type { Variables } from './environment.js'
import type { SettingsSchema } from './settings-schema.js'

const longestShown = 100

/** The settings that variables give, as their schemas read them, and what is wrong with each that cannot be used. */
export function readVariables(
  { variables: fields }: SettingsSchema,
  variables: Variables
): { readonly values: Readonly<Record<string, unknown>>; readonly faults: readonly string[] } {
  const values: Record<string, unknown> = {}
  const faults: string[] = []
  for (const [field, { name, schema, alone, parse, secret = false, takes }] of fields) {
    const text = variables(name)
    if (text === undefined) continue
    const value = readText(text, schema)
    const valid = validatorOf(alone, 'body')
    if (valid({ [field]: value }) !== true) {
      const expected = takes ?? wordsFor(schema)
      faults.push(
        expected === undefined
          ? explainFault(valid.errors, name).replace(field, name)
          : wrong(name, text, secret, expected)
      )
    } else if (parse !== undefined && parse(value as never) === undefined)
      faults.push(wrong(name, text, secret, takes ?? 'something else'))
    else values[field] = value
  }
  return { values, faults }
}

/** A setting that has no default, and whose variable is not set. */
export function missingVariable({ variables }: SettingsSchema, field: string): string {
  const declared = variables.get(field)
  const expected = declared?.takes ?? (declared === undefined ? undefined : wordsFor(declared.schema))
  return `${declared?.name} is not set${expected === undefined ? '' : `; it takes ${expected}`}`
}

const wrong = (name: string, text: string, isSecret: boolean, takes: string): string =>
  `${name} ${isSecret ? `cannot be used (${text.length} characters)` : `is ${JSON.stringify(text.slice(0, longestShown))}`}; it takes ${takes}`

/** The text as the type of the schema; as it is where it has none of its form, which the schema then refuses. */
export function readText(text: string, { type }: TSchema): unknown {
  if (type === 'integer' || type === 'number')
    return /^-?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})$/.test(text) ? Number(text) : text
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (type === 'array')
    return text
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
  return text
}

/** What values a schema takes, in words; undefined where only a form or a length says it. */
function wordsFor(schema: TSchema): string | undefined {
  const { type, enum: choices, minimum, maximum, exclusiveMinimum } = schema
  if (Array.isArray(choices)) return choices.join(', ')
  if (type === 'boolean') return 'true or false'
  if (type !== 'integer' && type !== 'number') return undefined
  const least = minimum ?? exclusiveMinimum
  const kind = type === 'integer' ? 'a whole number' : 'a number'
  const from =
    least === undefined ? '' : exclusiveMinimum === undefined ? ` from ${least}` : ` above ${least}`
  const to =
    maximum === undefined
      ? ''
      : from.startsWith(' from')
        ? ` to ${maximum}`
        : `${from && ','} up to ${maximum}`
  return `${kind}${from}${to}`
}
