import type { TSchema } from '@sinclair/typebox'

type Maker = (v: unknown) => object
type Copy = (value: unknown) => unknown

/**
 * A function that makes objects of these keys from a value `v`, several times as fast as setting one key after the
 * other. `expressions` are JavaScript: what each key becomes, of `v` and of the `parts`, which are named `c0`, `c1` ….
 * They must be the author's own, never input: `objectMaker(['n'], ['c0(v[1])'], [Number])(['', '7'])` is `{ n: 7 }`.
 */
export function objectMaker(
  keys: readonly string[],
  expressions: readonly string[],
  parts: readonly unknown[]
): Maker {
  // `"__proto__": …` would set the prototype.
  const fields = keys.map(
    (key, at) =>
      `${key === '__proto__' ? '["__proto__"]' : JSON.stringify(key)}: ${expressions[at] ?? 'undefined'}`
  )
  const make = new Function(...parts.map((_, at) => `c${at}`), `return v => ({ ${fields.join(', ')} })`) as (
    ...all: readonly unknown[]
  ) => Maker
  return make(...parts)
}

/**
 * A function that copies of a value what the schema declares, so that JSON.stringify writes nothing else; a `Date` where
 * the schema says `date-time` becomes its ISO text. The function throws at a value of another type. Undefined for a schema that
 * says more than types, objects and lists of one kind: `anyOf`, `const`, `default`, intersections, open objects.
 */
export function declaredCopier(schema: TSchema): Copy | undefined {
  const [type, ...others] = typesOf(schema).filter(one => one !== 'null')
  if (type === undefined || others.length > 0 || beyondTypes.some(keyword => keyword in schema))
    return undefined
  if (type === 'array') return listCopier(schema)
  if (type === 'object') return objectCopier(schema)
  return schema.format === 'date-time' ? moment : scalars[type]
}

// Beside a type they declare more of the value than `type` and `properties` tell.
const beyondTypes = ['const', 'default', 'nullable', 'allOf', 'anyOf', 'oneOf', 'if', '$ref']

const typesOf = ({ type }: TSchema): readonly string[] =>
  type === undefined ? [] : [type as string | string[]].flat()
const unlike = (): never => {
  throw new TypeError('a value is not of the declared type')
}

const scalars: Readonly<Record<string, Copy>> = {
  string: value => (typeof value === 'string' ? value : unlike()),
  boolean: value => (typeof value === 'boolean' ? value : unlike()),
  integer: value => (Number.isInteger(value) ? value : unlike()),
  number: value => (Number.isFinite(value) ? value : unlike())
}
const moment: Copy = value =>
  value instanceof Date ? isoText(value) : typeof value === 'string' ? value : unlike()

const dayMs = 86_400_000
const numbersOf = (digits: number): readonly string[] =>
  Array.from({ length: 10 ** digits }, (_, n) => String(n).padStart(digits, '0'))
const two = numbersOf(2)
const three = numbersOf(3)
let day = Number.NaN
let dayText = ''

/** As `toISOString`, in a fraction of its time for a list, whose moments are mostly of the same few days. */
function isoText(at: Date): string {
  const itsDay = Math.floor(at.getTime() / dayMs)
  if (itsDay !== day) {
    const text = at.toISOString()
    dayText = text.slice(0, text.indexOf('T') + 1)
    day = itsDay
  }
  const ms = at.getTime() - itsDay * dayMs
  return `${dayText}${two[Math.floor(ms / 3_600_000)]}:${two[Math.floor(ms / 60_000) % 60]}:${two[Math.floor(ms / 1000) % 60]}.${three[ms % 1000]}Z`
}

function listCopier({ items }: TSchema): Copy | undefined {
  const copy = items === undefined || Array.isArray(items) ? undefined : declaredCopier(items as TSchema)
  return copy && (value => (Array.isArray(value) ? value.map(item => copy(item)) : unlike()))
}

function objectCopier({
  properties = {},
  required = [],
  additionalProperties,
  patternProperties
}: TSchema): Copy | undefined {
  const entries = Object.entries(properties as Readonly<Record<string, TSchema>>)
  const copies = entries.map(([, schema]) => declaredCopier(schema))
  if (additionalProperties || patternProperties !== undefined || copies.includes(undefined)) return undefined
  const expressions = entries.map(([key, schema], at) => {
    const from = `v[${JSON.stringify(key)}]`
    const allowed = [
      ...(typesOf(schema).includes('null') ? ['null'] : []),
      ...((required as string[]).includes(key) ? [] : ['undefined'])
    ]
    return `${allowed.map(empty => `${from} === ${empty} ? ${empty} : `).join('')}c${at}(${from})`
  })
  return objectMaker(
    entries.map(([key]) => key),
    expressions,
    copies
  )
}
