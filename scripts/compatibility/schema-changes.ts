type Json = Readonly<Record<string, any>>

/** Who writes the value: clients write bodies and parameters, the platform writes answers and messages. */
export type Writer = 'client' | 'platform'

/** A description, for what its schemas refer to. */
export interface Document {
  readonly components?: { readonly schemas?: Readonly<Record<string, Json>> }
}
interface Side {
  readonly document: Document
  readonly schema: Json | undefined
}

const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems']
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems']

/**
 * What a client that was written by the schema before meets otherwise by the one now, each with its place (`vars/key`): what
 * it writes is refused, or what it reads is missing or of another type. Values that an answer may newly have are not among
 * it: a client must expect them.
 */
export function schemaChanges(before: Side, now: Side, writer: Writer, place = ''): string[] {
  return compare(before, now, writer, place, new Set())
}

function compare(before: Side, now: Side, writer: Writer, place: string, seen: Set<string>): string[] {
  if (before.schema === undefined) return []
  const where = place === '' ? 'the value' : `\`${place}\``
  if (now.schema === undefined) return [`${where} is gone`]
  // Schemas may hold themselves.
  const pair = JSON.stringify([before.schema.$ref, now.schema.$ref])
  if (before.schema.$ref !== undefined && now.schema.$ref !== undefined) {
    if (seen.has(pair)) return []
    seen = new Set([...seen, pair])
  }
  const old = wholeOf(before)
  const fresh = wholeOf(now)
  const child = (name: string): string => (place === '' ? name : `${place}/${name}`)
  const inner = (a: Json | undefined, b: Json | undefined, at: string): string[] =>
    compare({ ...before, schema: a }, { ...now, schema: b }, writer, at, seen)
  const fields = Object.keys(old.properties ?? {})
  return [
    ...typeChanges(old, fresh, writer, where),
    ...valueChanges(old, fresh, writer, where),
    ...(writer === 'client' ? boundChanges(old, fresh, where) : []),
    ...requiredChanges(old, fresh, writer, child),
    ...fields.flatMap(name => inner(old.properties[name], fresh.properties?.[name], child(name))),
    ...(old.items === undefined ? [] : inner(old.items, fresh.items, `${place}[]`)),
    ...(typeof old.additionalProperties === 'object'
      ? inner(old.additionalProperties, openOf(fresh.additionalProperties), `${place}{}`)
      : []),
    ...mapChanges(old, fresh, inner, place)
  ]
}

const openOf = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null ? (value as Json) : value === false ? undefined : {}

/** Records whose keys have a pattern. */
function mapChanges(
  old: Json,
  fresh: Json,
  inner: (a: Json | undefined, b: Json | undefined, at: string) => string[],
  place: string
): string[] {
  return Object.entries<Json>(old.patternProperties ?? {}).flatMap(([pattern, schema]) =>
    inner(schema, fresh.patternProperties?.[pattern], `${place}{}`)
  )
}

/** The schema with what it refers to in its place; `null` beside another schema is one of its types. */
function wholeOf({ document, schema = {} }: Side): Json {
  const { $ref: reference, ...rest } = schema
  if (typeof reference === 'string') {
    const name = reference.slice(reference.lastIndexOf('/') + 1)
    return wholeOf({ document, schema: { ...document.components?.schemas?.[name], ...rest } })
  }
  const choices = (schema.anyOf ?? []) as Json[]
  const others = choices.filter(({ type }) => type !== 'null')
  const [only] = others
  if (choices.length > others.length && others.length === 1 && only !== undefined) {
    const whole = wholeOf({ document, schema: only })
    return { ...whole, type: [...typesOf(whole), 'null'] }
  }
  return schema
}

const typesOf = ({ type }: Json): string[] => (type === undefined ? [] : [type].flat())

function typeChanges(old: Json, fresh: Json, writer: Writer, where: string): string[] {
  const [from, to] = [typesOf(old), typesOf(fresh)]
  if (old.anyOf !== undefined || fresh.anyOf !== undefined)
    return JSON.stringify(shapeOf(old)) === JSON.stringify(shapeOf(fresh))
      ? []
      : [`${where} has other choices`]
  const [written, read] = writer === 'client' ? [from, to] : [to, from]
  // Without types, anything is read.
  const refused = read.length === 0 ? [] : written.filter(type => !reads(read, type))
  if (written.length === 0 && read.length > 0) return [`${where} is ${read.join(' or ')} now`]
  return refused.length === 0 ? [] : [`${where} is ${to.join(' or ')} instead of ${from.join(' or ')}`]
}
const reads = (types: readonly string[], type: string): boolean =>
  types.includes(type) || (type === 'integer' && types.includes('number'))

/** Of a schema that is a choice: words and examples aside. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'description' && key !== 'examples')
      .map(([key, inner]) => [key, shapeOf(inner)])
  )
}

const valuesOf = ({ enum: values, const: only }: Json): unknown[] | undefined =>
  values ?? (only === undefined ? undefined : [only])

/** A client may write what it could; it expects that the platform may say more. */
function valueChanges(old: Json, fresh: Json, writer: Writer, where: string): string[] {
  const [from, to] = [valuesOf(old), valuesOf(fresh)]
  if (writer === 'platform') return []
  if (to === undefined) return []
  if (from === undefined) return [`${where} takes ${to.map(String).join(', ')} only`]
  const gone = from.filter(value => !to.includes(value))
  return gone.length === 0 ? [] : [`${where} takes ${gone.map(String).join(', ')} no longer`]
}

function boundChanges(old: Json, fresh: Json, where: string): string[] {
  const narrower = [
    ...lowerBounds.filter(key => fresh[key] !== undefined && !(old[key] >= fresh[key])),
    ...upperBounds.filter(key => fresh[key] !== undefined && !(old[key] <= fresh[key])),
    ...['pattern', 'format'].filter(key => fresh[key] !== undefined && old[key] !== fresh[key])
  ]
  return narrower.map(key => `${where} has another \`${key}\`, ${JSON.stringify(fresh[key])}`)
}

function requiredChanges(old: Json, fresh: Json, writer: Writer, child: (name: string) => string): string[] {
  const key = writer === 'client' ? 'x-required' : 'required'
  const [from, to]: [string[], string[]] = [old[key] ?? [], fresh[key] ?? []]
  return writer === 'client'
    ? to.filter(name => !from.includes(name)).map(name => `\`${child(name)}\` is required now`)
    : from
        .filter(name => !to.includes(name) && fresh.properties?.[name] !== undefined)
        .map(name => `\`${child(name)}\` may be missing now`)
}
