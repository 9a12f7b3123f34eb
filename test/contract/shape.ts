import { readFileSync } from 'node:fs'

/** A shape in the contract's notation: `uuid|null`, `[@Project]`, `{ status: 'string' }`. */
type Notation = string | { readonly [field: string]: Notation }

export interface Described {
  readonly method: string
  readonly path: string
  readonly group: string
  readonly responses: Readonly<Record<string, Notation>>
  readonly body?: Notation
  readonly query?: Readonly<Record<string, string>>
}

const contract = JSON.parse(readFileSync(new URL('./api.json', import.meta.url), 'utf8')) as {
  readonly operations: readonly Described[]
  readonly schemas: Readonly<Record<string, Notation>>
}

export const described: readonly Described[] = contract.operations

const simple: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  uuid: value => typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
  'date-time': value => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value),
  integer: value => Number.isInteger(value),
  number: value => typeof value === 'number',
  boolean: value => typeof value === 'boolean',
  any: () => true,
  null: value => value === null
}

/** The named shape behind a reference, or the notation itself. */
export const resolved = (notation: Notation): Notation =>
  typeof notation === 'string' && /^@\w+$/.test(notation)
    ? (contract.schemas[notation.slice(1)] ?? notation)
    : notation

/**
 * Where a value is not of the shape that the contract gives; empty when it is. `more` names fields that an
 * answer holds beyond the contract, on purpose.
 */
export function faultsOf(
  value: unknown,
  notation: Notation,
  more: readonly string[] = [],
  where = 'body'
): string[] {
  if (typeof notation === 'object') return objectFaults(value, notation, more, where)
  const choices = splitChoices(notation)
  if (choices.length > 1) {
    const faults = choices.map(choice => faultsOf(value, choice, more, where))
    return faults.some(list => list.length === 0) ? [] : (faults[0] ?? [])
  }
  if (notation === 'empty') return value === null ? [] : [`${where} is not empty`]
  const item = /^\[(.*)\]$/.exec(notation)?.[1]
  if (item !== undefined) {
    return Array.isArray(value)
      ? value.flatMap((one, index) => faultsOf(one, item, more, `${where}[${index}]`))
      : [`${where} is no array`]
  }
  const member = /^map<(.*)>$/.exec(notation)?.[1]
  if (member !== undefined) {
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).flatMap(([key, one]) => faultsOf(one, member, more, `${where}.${key}`))
      : [`${where} is no object`]
  }
  if (notation.startsWith('@')) {
    const schema = contract.schemas[notation.slice(1)]
    return schema === undefined
      ? [`${where}: the contract has no ${notation}`]
      : faultsOf(value, schema, more, where)
  }
  const fits = simple[notation]
  if (fits === undefined) return [`${where}: the notation ${notation} is unknown`]
  return fits(value) ? [] : [`${where} is ${JSON.stringify(value)}, not ${notation}`]
}

function objectFaults(
  value: unknown,
  shape: { readonly [field: string]: Notation },
  more: readonly string[],
  where: string
): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${where} is no object`]
  const given = value as Record<string, unknown>
  return [
    ...Object.entries(shape).flatMap(([field, notation]) =>
      field in given
        ? faultsOf(given[field], notation, more, `${where}.${field}`)
        : [`${where}.${field} is missing`]
    ),
    ...Object.keys(given)
      .filter(field => !(field in shape) && !more.includes(field))
      .map(field => `${where}.${field} is not in the contract`)
  ]
}

/** `a|[b|c]` → `a` and `[b|c]`. */
function splitChoices(notation: string): string[] {
  const choices: string[] = ['']
  let depth = 0
  for (const character of notation) {
    if (character === '[') depth++
    if (character === ']') depth--
    if (character === '|' && depth === 0) choices.push('')
    else choices[choices.length - 1] += character
  }
  return choices
}
