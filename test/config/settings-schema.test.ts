import { fromEnvironment, maybe, object, type TSchema, Type } from 'busbar/sdk'
import { test } from 'tap'
import { settingsSchema } from '../../core/config/settings-schema.js'

test('a schema of settings is taken apart once, by who sets them', t => {
  const config = object({
    size: Type.Integer(),
    must: fromEnvironment('SHOP_MUST', Type.String()),
    port: fromEnvironment('SHOP_PORT', Type.Integer({ default: 1 })),
    may: maybe(fromEnvironment('SHOP_MAY', Type.String()))
  }) as unknown as TSchema
  const schema = settingsSchema(config)
  t.same(Object.keys(schema.stored?.properties ?? {}), ['size'])
  t.same(
    [...schema.variables].map(([field, { name, isRequired }]) => [field, name, isRequired]),
    [
      ['must', 'SHOP_MUST', true],
      ['port', 'SHOP_PORT', false],
      ['may', 'SHOP_MAY', false]
    ]
  )
  t.equal(settingsSchema(config), schema)
  t.end()
})

test('a schema without fields, without required ones, or none at all has what it has', t => {
  const open = Type.Unsafe({ type: 'object' })
  t.same(settingsSchema(open), { stored: open, variables: new Map() })
  const bare = Type.Unsafe({
    type: 'object',
    properties: { port: fromEnvironment('SHOP_PORT', Type.Integer()) }
  })
  t.equal(settingsSchema(bare).variables.get('port')?.isRequired, false)
  t.same(settingsSchema(undefined), { stored: undefined, variables: new Map() })
  t.end()
})
