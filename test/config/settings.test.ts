import { list, maybe, object, type TSchema, Type } from 'busbar/sdk'
import { test } from 'tap'
import { unknownKeys } from '../../core/config/unknown-keys.js'
import { readText } from '../../core/config/variables.js'
import { unknownName } from '../../core/schemas/did-you-mean.js'

test('a name two letters from a known one is taken for it, one of three letters is not', t => {
  const known = ['database', 'jobs']
  t.equal(
    unknownName('databse', known),
    '"databse" is unknown; did you mean "database"? known are database, jobs'
  )
  t.match(unknownName('dtabse', known), 'did you mean "database"')
  t.equal(unknownName('dtabe', known), '"dtabe" is unknown; known are database, jobs')
  t.match(unknownName('dataabasee', known), 'did you mean "database"', 'letters too many')
  t.notMatch(unknownName('ddataabasee', known), 'did you mean')
  t.match(unknownName('xatabasy', known), 'did you mean "database"', 'other letters')
  t.notMatch(unknownName('xatxbasy', known), 'did you mean')
  t.end()
})

test('of two known names the nearer one is offered, wherever it stands', t => {
  for (const known of [
    ['ports', 'port'],
    ['port', 'ports']
  ]) {
    t.match(unknownName('por', known), 'did you mean "port"?', `of ${known.join(', ')}`)
    t.match(unknownName('portss', known), 'did you mean "ports"?', `of ${known.join(', ')}`)
  }
  t.equal(unknownName('any', []), '"any" is unknown; there are none to give')
  t.end()
})

test('a very long name is cut', t => {
  t.equal(unknownName('x'.repeat(5000), ['a']), `"${'x'.repeat(60)}" is unknown; known are a`)
  t.end()
})

test('the keys that a schema does not declare are found at any depth', t => {
  const schema = object({
    port: Type.Integer(),
    mail: object({ host: Type.String() }),
    hosts: list(object({ name: Type.String() })),
    labels: Type.Record(Type.String(), Type.String()),
    open: Type.Object({ a: Type.String() }, { additionalProperties: true }),
    any: Type.Array(Type.Object({ a: Type.String() }), { additionalProperties: false })
  })
  const known = ['port', 'mail', 'hosts', 'labels', 'open', 'any']
  t.same(unknownKeys(schema, { port: 1, prot: 2 }), [{ key: 'prot', known }])
  t.same(unknownKeys(schema, { mail: { hsot: 'a' } }), [{ key: 'mail/hsot', known: ['host'] }])
  t.same(unknownKeys(schema, { hosts: [{ name: 'a' }, { nam: 'b' }] }), [
    { key: 'hosts/1/nam', known: ['name'] }
  ])
  t.same(unknownKeys(schema, { labels: { any: 'a' } }), [], 'a record takes every key')
  t.same(unknownKeys(schema, { open: { a: '', b: '' } }), [], 'an open object too')
  t.same(unknownKeys(schema, { mail: null, hosts: 'none', port: [{ a: 1 }] }), [], 'what is no object')
  t.same(unknownKeys(schema, { toString: 1 }), [{ key: 'toString', known }], 'inherited names are none')
  t.same(unknownKeys(undefined, { a: 1 }), [{ key: 'a', known: [] }], 'without a schema nothing is known')
  t.same(unknownKeys(undefined, null), [])
  t.same(unknownKeys(Type.Object({ a: maybe(Type.String()) }), { b: 1 }), [{ key: 'b', known: ['a'] }])
  t.end()
})

test('the text of a variable is read by the type of its schema, and left alone where it does not fit', t => {
  const cases: ReadonlyArray<readonly [schema: TSchema, text: string, value: unknown]> = [
    [Type.Integer(), '12', 12],
    [Type.Integer(), '-12', -12],
    [Type.Number(), '0.5', 0.5],
    [Type.Number(), '.5', 0.5],
    [Type.Number(), '1e3', '1e3'],
    [Type.Number(), '', ''],
    [Type.Integer(), '0x10', '0x10'],
    [Type.Boolean(), 'true', true],
    [Type.Boolean(), 'false', false],
    [Type.Boolean(), 'yes', 'yes'],
    [Type.Array(Type.String()), 'a, b,,c ', ['a', 'b', 'c']],
    [Type.Array(Type.String()), '', []],
    [Type.String(), '12', '12']
  ]
  for (const [schema, text, value] of cases)
    t.strictSame(readText(text, schema), value, `${String(schema.type)} ${text}`)
  t.end()
})
