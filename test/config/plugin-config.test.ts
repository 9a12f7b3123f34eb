import { fromEnvironment, maybe, object, Type } from 'busbar/sdk'
import { test } from 'tap'
import { pluginConfig } from '../../core/config/plugin-config.js'
import { shownSettings } from '../../core/config/shown-settings.js'

const config = object({
  size: Type.Integer({ default: 3, minimum: 1 }),
  port: fromEnvironment('SHOP_PORT', Type.Integer({ minimum: 1, maximum: 65_535, default: 7000 })),
  key: fromEnvironment('SHOP_KEY', Type.String({ minLength: 3 }), {
    secret: true,
    takes: 'three characters'
  }),
  ports: maybe(
    fromEnvironment('SHOP_PORTS', Type.String(), {
      takes: 'two ports',
      parse: text => (/^\d+-\d+$/.test(text) ? text.split('-').map(Number) : undefined)
    })
  )
})
const read = (stored: object, variables: Record<string, string>) =>
  pluginConfig({ config }, stored as Record<string, unknown>, name => variables[name])

test('settings are those stored and those of the environment, with defaults for the rest', t => {
  t.same(read({}, { SHOP_KEY: 'abc' }), { size: 3, port: 7000, key: 'abc' })
  t.same(read({ size: 4 }, { SHOP_KEY: 'abc', SHOP_PORT: '80', SHOP_PORTS: '1-2' }), {
    size: 4,
    port: 80,
    key: 'abc',
    ports: [1, 2]
  })
  t.ok(Object.isFrozen(read({}, { SHOP_KEY: 'abc' })))
  t.same(
    pluginConfig({ config: undefined }, {}, () => undefined),
    {}
  )
  t.end()
})

test('every variable that cannot be used is named, and the text of a secret one is not', t => {
  t.throws(() => read({}, {}), { message: 'SHOP_KEY is not set; it takes three characters' })
  t.throws(() => read({}, { SHOP_KEY: 'ab', SHOP_PORT: '0', SHOP_PORTS: 'x' }), {
    message:
      'SHOP_PORT is "0"; it takes a whole number from 1 to 65535; SHOP_KEY cannot be used (2 characters); it takes three characters; SHOP_PORTS is "x"; it takes two ports'
  })
  t.end()
})

test('what is stored is checked, and may not stand for a variable', t => {
  const key = { SHOP_KEY: 'abc' }
  t.throws(() => read({ size: 0 }, key), /size/)
  t.throws(() => read({ port: 80, siez: 1 }, key), {
    message:
      /^settings: "port" is set by the environment variable SHOP_PORT alone; "siez" is unknown; did you mean "size"\? known are size$/
  })
  t.throws(() => pluginConfig({ config: undefined }, { a: 1 }, () => undefined), /"a" is unknown/)
  t.end()
})

test('a default that its own form refuses is told', t => {
  const broken = object({
    ports: fromEnvironment('SHOP_PORTS', Type.String({ default: 'x' }), {
      takes: 'two ports',
      parse: () => undefined
    })
  })
  t.throws(() => pluginConfig({ config: broken }, {}, () => undefined), {
    message: 'the default of SHOP_PORTS cannot be used; it takes two ports'
  })
  t.end()
})

test('operators see each setting with where it comes from, and no secret', t => {
  t.equal(
    shownSettings(undefined, {}, () => undefined),
    null
  )
  const variables: Record<string, string> = { SHOP_KEY: 'abc', SHOP_PORT: '80' }
  const shown = shownSettings(config, { size: 9 }, name => variables[name])?.properties as Record<
    string,
    object
  >
  const told = Object.fromEntries(
    Object.entries(shown).map(([name, field]) => [
      name,
      Object.fromEntries(Object.entries(field).filter(([key]) => key === 'x-source' || key === 'x-value'))
    ])
  )
  t.same(told, {
    size: { 'x-source': 'stored', 'x-value': 9 },
    port: { 'x-source': 'environment', 'x-value': 80 },
    key: { 'x-source': 'environment' },
    ports: { 'x-source': 'default' }
  })
  const defaults = shownSettings(config, {}, () => undefined)?.properties as Record<string, object>
  t.match(defaults, { size: { 'x-source': 'default', 'x-value': 3 }, port: { 'x-environment': 'SHOP_PORT' } })
  const open = Type.Record(Type.String(), Type.String())
  t.equal(
    shownSettings(open, {}, () => undefined),
    open
  )
  t.end()
})

test('what a form makes of a value is kept whatever it is, and nothing is made of what is unset', t => {
  const given: string[] = []
  const made = object({
    zero: fromEnvironment('SHOP_ZERO', Type.String({ default: '0' }), {
      takes: 'a number',
      parse: text => {
        given.push(text)
        return Number(text)
      }
    }),
    none: maybe(
      fromEnvironment('SHOP_NONE', Type.String(), { takes: 'x', parse: text => void given.push(text) })
    )
  })
  t.same(
    pluginConfig({ config: made }, {}, () => undefined),
    { zero: 0 }
  )
  t.same(given, ['0'])
  const nested = object({ smtp: object({ port: Type.Integer() }) })
  t.throws(() => pluginConfig({ config: nested }, { smtp: { prot: 1 } }, () => undefined), {
    message: /^settings: "prot" is unknown; did you mean "port"\?/
  })
  t.end()
})
