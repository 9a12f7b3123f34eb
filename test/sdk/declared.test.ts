import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import { list, maybe, nullable, object, oneOf, type TSchema, Type, timestamp, uuid } from 'busbar/sdk'
import fc from 'fast-check'
import { test } from 'tap'
import { declaredCopier, objectMaker } from '../../core/schemas/declared.js'

const written = (schema: TSchema, value: unknown): unknown =>
  JSON.parse(JSON.stringify(declaredCopier(schema)?.(value)))
const byLibrary = (schema: TSchema, value: unknown): unknown => {
  const write = SerializerSelector()({}, undefined as never)({
    schema,
    method: 'GET',
    url: '/',
    httpStatus: '200'
  } as never) as (value: unknown) => string
  return JSON.parse(write(value))
}

const item = object({
  id: uuid(),
  name: Type.String(),
  '__proto__x"\\\n': Type.Boolean(),
  note: nullable(Type.String()),
  kind: oneOf(['a', 'b']),
  size: Type.Number(),
  count: nullable(Type.Integer()),
  at: timestamp(),
  ended: nullable(timestamp()),
  extra: maybe(Type.String()),
  tags: list(Type.String()),
  owner: object({ email: Type.String(), since: maybe(nullable(timestamp())) })
})
const date = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
const anItem = fc.record({
  id: fc.uuid(),
  name: fc.string({ unit: 'binary' }),
  '__proto__x"\\\n': fc.boolean(),
  note: fc.option(fc.string()),
  kind: fc.constantFrom('a', 'b'),
  size: fc.double({ noNaN: true, noDefaultInfinity: true }),
  count: fc.option(fc.integer()),
  at: fc.oneof(
    date,
    date.map(at => at.toISOString())
  ),
  ended: fc.option(date),
  extra: fc.option(fc.string(), { nil: undefined }),
  tags: fc.array(fc.string()),
  owner: fc.record({
    email: fc.string(),
    since: fc.constantFrom(undefined, null, new Date(0)),
    secret: fc.string()
  }),
  secret: fc.string()
})

test('a copy holds what the schema declares, as fast-json-stringify writes it, and nothing else at any depth', async t => {
  fc.assert(
    fc.property(fc.array(anItem, { maxLength: 5 }), items => {
      t.same(written(list(item), items), byLibrary(list(item), items))
      t.notMatch(JSON.stringify(written(list(item), items)), '"secret"')
    }),
    { numRuns: 50 }
  )
})

test('a moment is written as toISOString writes it, whatever was written before', async t => {
  const copy = declaredCopier(timestamp())
  fc.assert(
    fc.property(
      fc.date({ noInvalidDate: true }),
      fc.integer({ min: -172_800_000, max: 172_800_000 }),
      (at, apart) => {
        const other = new Date(at.getTime() + apart)
        for (const one of Number.isNaN(other.getTime()) ? [at] : [at, other, at])
          t.equal(copy?.(one), one.toISOString())
      }
    ),
    { numRuns: 200 }
  )
  t.throws(() => copy?.(new Date(Number.NaN)), RangeError)
})

test('a value that is not of the declared type is refused, so that nobody writes it as it is', async t => {
  const good: Readonly<Record<string, unknown>> | undefined = fc.sample(anItem, 1)[0]
  const copy = declaredCopier(item)
  t.ok(copy?.(good))
  for (const bad of [
    { id: 7 },
    { name: undefined },
    { name: null },
    { note: undefined },
    { size: Infinity },
    { count: 1.5 },
    { at: 5 },
    { tags: 'a' },
    { tags: [1] },
    { owner: null }
  ]) {
    t.throws(() => copy?.({ ...good, ...bad }), TypeError, JSON.stringify(bad))
  }
  for (const bad of [null, undefined]) t.throws(() => copy?.(bad))
})

test('there is no copy by a schema that says more than types', async t => {
  const more = [
    Type.Union([Type.String(), Type.Integer()]),
    Type.Literal('a'),
    Type.Record(Type.String(), Type.String()),
    Type.Unknown(),
    Type.String({ default: 'a' }),
    Type.Object({}, { additionalProperties: true }),
    object({ inner: Type.Unknown() }),
    list(Type.Unknown()),
    Type.Intersect([object({ a: Type.String() }), object({ b: Type.String() })]),
    ...[
      { nullable: true },
      { anyOf: [] },
      { oneOf: [] },
      // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
      { if: {}, then: {} },
      { $ref: '#/definitions/a' }
    ].map(keyword => Type.Object({}, keyword))
  ]
  for (const schema of more) t.equal(declaredCopier(schema), undefined, JSON.stringify(schema))
})

test('a key named __proto__ is a key like any other', async t => {
  const made = objectMaker(['__proto__', 'a'], ['v', 'c0(v)'], [String])(1)
  t.equal(JSON.stringify(made), '{"__proto__":1,"a":"1"}')
  t.equal(Object.getPrototypeOf(made), Object.prototype)
})
