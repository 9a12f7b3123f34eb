import fc from 'fast-check'

type Schema = Readonly<Record<string, any>>

/** Strings that have broken programs before. */
const evilTexts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\u202e\ufeff\u200d',
  '\ufffe\uffff',
  '𝕏'.repeat(300),
  'e\u0301'.repeat(200),
  '\r\nSet-Cookie: a=b',
  '\u2028\u2029',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  '-0',
  '1e309',
  '0x10',
  '9'.repeat(400),
  '../../../etc/passwd',
  '%00',
  '%2e%2e%2f',
  '%c0%ae',
  '\\',
  '\'"`;--',
  '${7*7}',
  '{{7*7}}',
  '$(id)',
  '`id`',
  '-oProxyCommand=id',
  '<script>',
  'http://[::1',
  'http://127.0.0.1:1/',
  'file:///etc/passwd',
  'a@b',
  '\u0130\u0131',
  '(a+)+$',
  'A'.repeat(70_000)
]
const evil: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...evilTexts),
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    -1,
    1.5,
    1e308,
    -1e308,
    2 ** 31,
    2 ** 53,
    2 ** 63,
    1e-300,
    [],
    {},
    [[]],
    [null],
    { length: -1 }
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc
    .constantFrom(30, 2_000)
    .map(levels => Array.from({ length: levels }).reduce<unknown>(inner => [inner], 0)),
  fc
    .constantFrom(30, 2_000)
    .map(levels => Array.from({ length: levels }).reduce<unknown>(inner => ({ a: inner }), 0)),
  fc.jsonValue({ maxDepth: 3 })
)

/** Values that mostly keep to the schema, and sometimes do not, at any place in them. */
export function around(schema: Schema | undefined, depth = 0): fc.Arbitrary<unknown> {
  if (schema === undefined || depth > 5) return evil
  return fc.oneof({ weight: 5, arbitrary: within(schema, depth) }, { weight: 1, arbitrary: evil })
}

function within(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...(schema.enum as unknown[]))
  const options = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined
  if (options !== undefined) return fc.oneof(...options.map(option => within(option, depth + 1)))
  const types = [schema.type].flat() as Array<string | undefined>
  return fc.oneof(...types.map(type => ofType(type, schema, depth)))
}

function ofType(type: string | undefined, schema: Schema, depth: number): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({
        min: clamp(schema.minimum, -5),
        max: Math.max(clamp(schema.minimum, -5), clamp(schema.maximum, 100_000))
      })
    case 'number':
      return fc.double({
        min: clamp(schema.minimum, -5),
        max: Math.max(clamp(schema.minimum, -5), clamp(schema.maximum, 100_000)),
        noNaN: true
      })
    case 'string':
      return textOf(schema)
    case 'array':
      return fc.array(around(schema.items as Schema | undefined, depth + 1), {
        maxLength: Math.min(4, (schema.maxItems as number | undefined) ?? 4)
      })
    case 'object':
      return objectOf(schema, depth)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const clamp = (limit: unknown, otherwise: number): number =>
  typeof limit === 'number' ? Math.max(-(2 ** 31), Math.min(2 ** 31, limit)) : otherwise

function textOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.format === 'uuid') return fc.uuid()
  if (schema.format === 'date-time') return fc.date({ noInvalidDate: true }).map(date => date.toISOString())
  const min = (schema.minLength as number | undefined) ?? 0
  const max = Math.max(min, Math.min(200, (schema.maxLength as number | undefined) ?? 60))
  // What people type gets past patterns; everything else finds out what patterns forget.
  return fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom(
        'web',
        'main',
        'a@example.com',
        'correct horse battery',
        'https://git.example.com/a/b.git',
        '/healthz',
        'busybox:lab',
        '0 3 * * *',
        'shop.example.com'
      )
    },
    { weight: 2, arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: min, maxLength: max }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: min, maxLength: max }) },
    { weight: 1, arbitrary: fc.constantFrom(...evilTexts) }
  )
}

function objectOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const properties = (schema.properties ?? {}) as Record<string, Schema>
  const required = (schema.required ?? []) as string[]
  const known = fc.record(
    Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, around(value, depth + 1)])),
    { requiredKeys: [] }
  )
  // The required ones are there more often than not, or nothing but the validator would be tested.
  const whole = fc.record(
    Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, around(value, depth + 1)])),
    { requiredKeys: required.filter(key => key in properties) }
  )
  const extra = fc.dictionary(
    fc.constantFrom('__proto__', 'constructor', 'id', 'role', 'user_id', 'project_id', 'extra'),
    evil,
    { maxKeys: 2 }
  )
  return fc.oneof(
    { weight: 4, arbitrary: whole },
    { weight: 1, arbitrary: known },
    { weight: 1, arbitrary: fc.tuple(whole, extra).map(([a, b]) => ({ ...a, ...b })) }
  )
}

/** A path segment or a query value, encoded or deliberately not. */
export const urlText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    'x',
    '%00',
    '%',
    '%zz',
    '%ff',
    '%c0%ae',
    '..%2f..',
    '%2e%2e',
    'a%0d%0ab',
    '0',
    '-1',
    '1e99',
    'NaN',
    '00000000-0000-0000-0000-000000000000',
    'ABCDEF12-0000-0000-0000-000000000000',
    'x'.repeat(600),
    '%20',
    '+',
    ';a=b',
    '%F0%9F%92%A9'
  ),
  fc.uuid(),
  fc.string({ unit: 'grapheme', maxLength: 20 }).map(encodeURIComponent)
)

export const contentTypes: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '',
      'text/plain',
      'application/json; charset=utf-16',
      'application/json;',
      'multipart/form-data; boundary=',
      'application/x-www-form-urlencoded',
      'application/json, text/plain',
      '/',
      'x'.repeat(300),
      'APPLICATION/JSON'
    )
  }
)

/** The text of a body: mostly JSON of the value, sometimes cut off, doubled or with bytes that are no text. */
export const spoiled = (value: unknown): fc.Arbitrary<string | Buffer> => {
  const json = JSON.stringify(value) ?? ''
  return fc.oneof(
    { weight: 9, arbitrary: fc.constant(json) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<string | Buffer>(
        json.slice(0, -1),
        json + json,
        `\ufeff${json}`,
        json.replaceAll('"', "'"),
        Buffer.concat([Buffer.from(json), Buffer.from([0xc3, 0x28])]),
        `${json}\u0000`
      )
    }
  )
}
