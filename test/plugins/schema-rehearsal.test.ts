import type { AnyPlugin } from 'busbar/sdk'
import { test } from 'tap'
import type { PluginRecords } from '../../core/declarations/records.js'
import { rehearseSchemas } from '../../core/plugins/schema-rehearsal.js'

const fine = { type: 'string' }
const faulty = { type: 'string', pattern: '(' }
const rehearse = (schema: object, config?: object): void =>
  rehearseSchemas(
    { config } as unknown as AnyPlugin,
    { routes: [{ method: 'GET', url: '/x', schema }] } as unknown as PluginRecords
  )

test('a faulty schema of a plugin is told with its place, and one that is fine or missing is not', t => {
  rehearse({})
  rehearse({ params: { id: fine }, query: fine, body: fine, response: { 200: fine, 204: null } }, fine)
  const places: ReadonlyArray<readonly [schema: object, config: object | undefined, place: RegExp]> = [
    [{}, faulty, /^the schema of config: [^;]+$/],
    [{ params: { id: faulty, other: undefined } }, undefined, /^route GET \/x: the schema of id: [^;]+$/],
    [{ query: faulty }, undefined, /^route GET \/x: the schema of query: [^;]+$/],
    [{ body: faulty }, undefined, /^route GET \/x: the schema of body: [^;]+$/],
    [
      { response: { 200: { $ref: '#/nowhere' }, 204: null } },
      undefined,
      /^route GET \/x: the schema of 200: [^;]+$/
    ],
    [{ query: faulty, body: faulty }, undefined, /of query: [^;]+; route GET \/x: the schema of body: [^;]+$/]
  ]
  for (const [schema, config, message] of places)
    t.throws(() => rehearse(schema, config), { message }, String(message))
  t.end()
})
