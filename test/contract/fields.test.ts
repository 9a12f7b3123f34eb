import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type ContractShape, operations, schemas } from './contract.js'
import { fields } from './extensions.js'

/** The JSON schema of a route, as far as shapes go. */
interface Schema {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
}

/** Who reads: a client must find what it was promised, a body must take what a client may send. */
type Direction = 'answer' | 'body'

const unnamed = ['any', 'plugin', 'OpenAPI 3.1.0', 'byte']
const withoutJson = ['sse', 'empty', 'csv', 'ws', 'redirect', 'prometheus text', 'default/unresolved']

const typesOf = ({ type }: Schema): readonly string[] => (typeof type === 'string' ? [type] : (type ?? []))

/** What is wrong with a schema where the contract says `shape`; `name` is the contract's own, where it has one. */
function faults(
  shape: ContractShape,
  schema: Schema | undefined,
  direction: Direction,
  name: string
): string[] {
  if (schema === undefined) return ['is missing']
  if (typeof shape === 'object') return faultsOfFields(shape, schema, direction, name)
  const { text, isNullable } = withoutNull(shape)
  if (unnamed.includes(text) || text.includes('|')) return []
  const isNull =
    typesOf(schema).includes('null') || schema.anyOf?.some(one => typesOf(one).includes('null')) === true
  const nullFault =
    direction === 'answer' && isNull && !isNullable
      ? ['can be null']
      : direction === 'body' && !isNull && isNullable
        ? ['refuses null']
        : []
  return [...nullFault, ...faultsOfType(text, notNull(schema), direction, name)]
}

function faultsOfType(text: string, schema: Schema, direction: Direction, name: string): string[] {
  const [, item] = /^\[(.+)\]$/.exec(text) ?? []
  if (item !== undefined)
    return typesOf(schema).includes('array') ? faults(item, schema.items, direction, name) : ['is no array']
  const [, reference] = /^@(\w+)$/.exec(text) ?? []
  if (reference !== undefined) return faults(schemas[reference] ?? 'any', schema, direction, reference)
  if (text.startsWith('map<')) return typesOf(schema).includes('object') ? [] : ['is no object']
  const isFormat = text === 'uuid' || text === 'date-time'
  const wanted = isFormat ? 'string' : text
  if (
    !typesOf(schema).every(
      type => type === wanted || type === 'null' || (wanted === 'number' && type === 'integer')
    )
  )
    return [`is ${typesOf(schema).join(' or ')} instead of ${text}`]
  return direction === 'answer' && isFormat && schema.format !== text
    ? [`is any string instead of ${text}`]
    : []
}

function faultsOfFields(
  shape: { readonly [field: string]: ContractShape },
  schema: Schema,
  direction: Direction,
  name: string
): string[] {
  const found = schema.properties ?? {}
  const known = new Set([...Object.keys(shape), ...Object.keys(fields[name] ?? {})])
  return [
    ...Object.entries(shape).flatMap(([field, inner]) =>
      faults(inner, found[field], direction, `${name}.${field}`).map(fault => `${field} ${fault}`)
    ),
    ...Object.keys(found)
      .filter(field => !known.has(field))
      .map(field => `${field} is neither in the contract (${name}) nor among the extensions`)
  ]
}

const withoutNull = (shape: string): { text: string; isNullable: boolean } =>
  shape.endsWith('|null')
    ? { text: shape.slice(0, -'|null'.length), isNullable: true }
    : { text: shape, isNullable: shape === 'null' }

const notNull = (schema: Schema): Schema =>
  schema.anyOf?.find(one => !typesOf(one).includes('null')) ?? schema

test('every answer, body and query has the fields of the contract, and no others but those that are declared', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const wrong: string[] = []
  let compared = 0
  for (const {
    record: { method, url, schema, summary }
  } of k.routes()) {
    const name = `${method} ${url.replace(/:(\w+)/g, '{$1}')}`
    const operation = operations.get(name)
    if (operation === undefined) continue
    const note = (where: string, found: readonly string[]) => {
      compared++
      wrong.push(...found.map(fault => `${name} ${where}: ${fault}`))
    }
    const answers = schema.response as Readonly<Record<string, Schema>> | undefined
    for (const [status, shape] of Object.entries(operation.responses ?? {})) {
      if (typeof shape === 'string' && withoutJson.includes(shape)) continue
      if (shape === 'OpenAPI 3.1.0') continue
      note(status, faults(shape, answers?.[status], 'answer', name))
    }
    if (operation.body !== undefined)
      note('body', faults(operation.body, schema.body as Schema | undefined, 'body', name))
    const queries = (schema.query as Schema | undefined)?.properties ?? {}
    note(
      'query',
      Object.keys(operation.query ?? {})
        .map(query => query.replace('!', ''))
        .filter(query => !(query in queries))
        .map(query => `${query} is missing`)
    )
    if (operation.summary !== undefined && operation.summary !== summary)
      note('summary', [`is ${summary ?? 'missing'} instead of ${operation.summary}`])
  }
  t.same(wrong, [], `${compared} shapes are as the contract says`)
  t.ok(compared > 100)
})
