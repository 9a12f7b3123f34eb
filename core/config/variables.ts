import type { TSchema } from 'busbar/sdk'
import { explainFault } from '../schemas/schema-fault.js'
import { validatorOf } from '../schemas/schemas.js'
import type { Variables } from './environment.js'
import type { SettingsSchema, VariableField } from './settings-schema.js'

const longestShown = 100

/** The settings that variables give, as their schemas read them, and what is wrong with each that cannot be used or has to be set. */
export function readVariables(
  { variables: fields }: SettingsSchema,
  variables: Variables
): { readonly values: Readonly<Record<string, unknown>>; readonly faults: readonly string[] } {
  const values: Record<string, unknown> = {}
  const faults: string[] = []
  for (const [field, declared] of fields) {
    const text = variables(declared.name)
    if (text === undefined) {
      if (declared.isRequired) faults.push(unset(declared))
      continue
    }
    const value = readText(text, declared.schema)
    const fault = faultOf(declared, text, value)
    if (fault === null) values[field] = value
    else faults.push(fault)
  }
  return { values, faults }
}

function faultOf(declared: VariableField, text: string, value: unknown): string | null {
  const { name, asObject, parse, secret = false } = declared
  const valid = validatorOf(asObject, 'body')
  const fits = valid({ [name]: value }) === true
  if (fits && (parse === undefined || parse(value as never) !== undefined)) return null
  const takes = whatItTakes(declared)
  if (takes === undefined) return explainFault(valid.errors, name)
  const shown = secret
    ? `cannot be used (${text.length} characters)`
    : `is ${JSON.stringify(text.slice(0, longestShown))}`
  return `${name} ${shown}; it takes ${takes}`
}

function unset(declared: VariableField): string {
  const takes = whatItTakes(declared)
  return `${declared.name} is not set${takes === undefined ? '' : `; it takes ${takes}`}`
}

const whatItTakes = ({ takes, schema }: VariableField): string | undefined => takes ?? wordsFor(schema)

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
