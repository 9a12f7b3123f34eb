import { Ajv, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import type { TSchema } from 'busbar/sdk'
import { valuesKeyword } from '../../sdk/described-schema.js'
import { variableKeyword } from '../../sdk/settings.js'

// ajv-formats is CommonJS: its function is the module itself at run time, `default` by its types.
const addFormats = (typeof formats === 'function' ? formats : (formats as { default: unknown }).default) as (
  ajv: Ajv
) => Ajv

const options = {
  strict: true,
  strictTypes: false,
  allowUnionTypes: true,
  removeAdditional: true,
  useDefaults: true,
  // A `$id` names a schema within itself: another plugin, or the next version of this one, may use the same.
  addUsedSchema: false
} as const

type SchemaUse = 'body' | 'text'

/** Bodies are taken as they are; path parameters and queries arrive as text and are coerced. */
const compilers: Readonly<Record<SchemaUse, Ajv>> = {
  body: compiler(false),
  // A list of one, in a query, is written as one value is.
  text: compiler('array')
}

function compiler(coerceTypes: 'array' | false, allErrors = false): Ajv {
  return addFormats(new Ajv({ ...options, coerceTypes, allErrors })).addVocabulary([
    'x-required',
    'x-unit',
    valuesKeyword,
    variableKeyword
  ])
}

// Schemas are module constants, so identity is the key: a reload finds what was compiled before.
const compiled = new WeakMap<object, ValidateFunction>()

/** The validator of a schema, compiled when it is first used. */
export function validatorOf(schema: object, use: SchemaUse): ValidateFunction {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const fresh = compilers[use].compile(schema)
  compiled.set(schema, fresh)
  return fresh
}

/** Of those that find all faults instead of the first, made when a body is first refused: what they cost grows with the faults. */
let thorough: Ajv | undefined
const compiledThorough = new WeakMap<object, ValidateFunction>()
/** Values in a body of which all faults are looked for. */
const mostValues = 2000

/** All faults of a refused body; the first one alone where the body is large. `first` is the one that is known. */
export function faultsOfBody(
  schema: object,
  body: unknown,
  first: ValidateFunction['errors']
): ValidateFunction['errors'] {
  if (!hasAtMost(body, mostValues)) return first
  let validate = compiledThorough.get(schema)
  if (validate === undefined) {
    thorough ??= compiler(false, true)
    validate = thorough.compile(schema)
    compiledThorough.set(schema, validate)
  }
  return validate(body) === true ? first : validate.errors
}

function hasAtMost(body: unknown, most: number): boolean {
  const left = [body]
  for (let seen = 0; left.length > 0; seen++) {
    if (seen + left.length > most) return false
    const value = left.pop()
    if (typeof value === 'object' && value !== null) {
      const inner = Object.values(value)
      if (inner.length > most) return false
      left.push(...inner)
    }
  }
  return true
}

// Of a module's constants too: several routes answer the same.
const sound = new WeakSet<object>()

/** What is wrong with a schema as a schema; null when nothing is. Much cheaper than compiling it. */
export function checkSchema(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null) return 'it is not an object'
  if (sound.has(schema)) return null
  try {
    // It is shown as JSON, to operators and in the description of the API.
    JSON.stringify(schema)
  } catch (error) {
    return `it cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`
  }
  const { body } = compilers
  if (body.validateSchema(schema) !== true) return body.errorsText(body.errors)
  sound.add(schema)
  return null
}

/**
 * What keeps a schema from being used: an unknown keyword or format, a pattern that is none, a reference to nowhere;
 * null when nothing does. What it compiles is not kept.
 */
export function compileFault(schema: object, use: SchemaUse): string | null {
  const compiler = compilers[use]
  try {
    compiler.compile(schema)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    compiler.removeSchema(schema)
  }
}

const isBadText = (value: unknown): boolean =>
  typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())

/** Whether some text in it is none that PostgreSQL can hold. Without recursion: bodies may be deep. */
export function holdsBadText(body: unknown): boolean {
  const left = [body]
  while (left.length > 0) {
    const value = left.pop()
    if (isBadText(value)) return true
    if (typeof value !== 'object' || value === null) continue
    for (const [key, inner] of Object.entries(value)) left.push(key, inner)
  }
  return false
}

interface Place {
  readonly value: unknown
  readonly key: string
  readonly within: Place | undefined
}

/** Where the first such text is, as `vars/0/value`; of a key that is one, where it stands. For bodies that have one: it costs more. */
export function badTextField(body: unknown): string {
  const left: Place[] = [{ value: body, key: '', within: undefined }]
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    if (isBadText(place.key)) return pathOf(place.within)
    if (isBadText(place.value)) return pathOf(place)
    if (typeof place.value !== 'object' || place.value === null) continue
    for (const [key, value] of Object.entries(place.value).reverse()) left.push({ value, key, within: place })
  }
  return ''
}

function pathOf(place: Place | undefined): string {
  const keys: string[] = []
  for (let at = place; at?.within !== undefined; at = at.within) keys.push(at.key)
  return keys.reverse().join('/')
}

const strict = new WeakMap<object, TSchema>()

/** A copy of a body schema in which objects drop the keys they do not name; the same copy each time. */
export function strictBody(schema: TSchema): TSchema {
  // `true` and `false` are schemas too.
  if (typeof schema !== 'object') return schema
  const known = strict.get(schema)
  if (known !== undefined) return known
  const copy = { ...schema } as TSchema & Record<string, unknown>
  if (copy.properties !== undefined) {
    copy.additionalProperties ??= false
    copy.properties = Object.fromEntries(
      Object.entries(copy.properties as Record<string, TSchema>).map(([key, value]) => [
        key,
        strictBody(value)
      ])
    )
  }
  if (copy.items !== undefined && !Array.isArray(copy.items)) copy.items = strictBody(copy.items as TSchema)
  strict.set(schema, copy)
  return copy
}
