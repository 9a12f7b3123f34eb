import {
  type AnyPlugin,
  allow,
  definePlugin,
  described,
  list,
  maybe,
  named,
  nullable,
  object,
  type TSchema,
  Type,
  text
} from 'busbar/sdk'
import { test } from 'tap'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'
import { schemaConflicts } from '../../core/declarations/schema-components.js'
import { strictBody, validatorOf } from '../../core/schemas/schemas.js'

interface Schemas {
  readonly answer?: TSchema
  readonly body?: TSchema
}

/** A plugin with a POST for each of these. */
const plugin = (id: string, schemas: readonly Schemas[], prefix = '/api'): AnyPlugin =>
  definePlugin({
    id,
    routes(route) {
      for (const [at, { answer, body }] of schemas.entries()) {
        route({
          method: 'POST',
          url: `${prefix}/${id}/${at}`,
          summary: 'Do',
          access: allow.token('write', { project: 'none' }),
          schema: { ...(answer && { response: { 200: answer } }), ...(body && { body }) },
          handler: () => ({}) as never
        })
      }
    }
  })
const routesOf = (id: string, schemas: readonly Schemas[]) =>
  record(plugin(id, schemas), { id, builtIn: true }).routes
const answerOf = (api: any, path: string): unknown =>
  api.paths[path].post.responses['200'].content['application/json'].schema

const note = named('Note', object({ title: described(text({ max: 9 }), 'What it is about.') }))

test('a named schema stands once among the components, and is referred to wherever it occurs', async t => {
  const api: any = describeApi(
    routesOf('notes', [
      { answer: note },
      { answer: list(note) },
      { answer: object({ first: nullable(note), more: maybe(described(note, 'The one after it.')) }) }
    ])
  )
  const reference = { $ref: '#/components/schemas/Note' }
  t.same(answerOf(api, '/api/notes/0'), reference)
  t.same(answerOf(api, '/api/notes/1'), { type: 'array', items: reference })
  t.match(answerOf(api, '/api/notes/2'), {
    properties: {
      first: { anyOf: [reference, { type: 'null' }] },
      more: { ...reference, description: 'The one after it.' }
    }
  })
  t.match(api.components.schemas.Note, {
    type: 'object',
    properties: { title: { type: 'string', maxLength: 9, description: 'What it is about.' } },
    required: ['title']
  })
})

test('a named body marks no field as required, and keeps its examples as they are', async t => {
  const body = named('CreateNote', object({ required: text({ max: 9 }) }), {
    description: 'A note to keep.',
    examples: [{ required: 'x' }]
  })
  const api: any = describeApi(routesOf('notes', [{ body }]))
  t.same(api.paths['/api/notes/0'].post.requestBody.content['application/json'].schema, {
    $ref: '#/components/schemas/CreateNote'
  })
  t.match(api.components.schemas.CreateNote, {
    'x-required': ['required'],
    description: 'A note to keep.',
    examples: [{ required: 'x' }],
    properties: { required: { type: 'string' } }
  })
  t.notHas(api.components.schemas.CreateNote, { additionalProperties: false })
})

test('a name and words change nothing for who validates', async t => {
  const plain = object({ title: text({ max: 3 }) })
  const telling = named('Note', object({ title: described(text({ max: 3 }), 'Words.') }))
  const without = (schema: TSchema): unknown =>
    JSON.parse(JSON.stringify(schema, (key, value) => (key === 'description' ? undefined : value)))
  t.same(without(strictBody(telling)), without(strictBody(plain)))
  for (const value of [{ title: 'abc' }, { title: 'abcd' }, {}, { title: 1 }, { title: 'a', more: 1 }]) {
    const [left, right] = [structuredClone(value), structuredClone(value)]
    t.equal(validatorOf(telling, 'body')(left), validatorOf(plain, 'body')(right))
    t.same(left, right)
  }
})

test('what is made of a named schema is not taken for it', async t => {
  const api: any = describeApi(
    routesOf('notes', [{ answer: Type.Partial(note) }, { answer: Type.Pick(note, []) }])
  )
  t.match(answerOf(api, '/api/notes/0'), { type: 'object' })
  t.match(answerOf(api, '/api/notes/1'), { type: 'object' })
})

test('two different schemas of one name are a fault of the plugin that names both', async t => {
  const other = named('Note', object({ title: text({ max: 10 }) }))
  t.throws(() => routesOf('notes', [{ answer: note }, { answer: list(other) }]), {
    message:
      /the schema "Note" of POST \/api\/notes\/1 \(answer\) is not the one of POST \/api\/notes\/0 \(answer\)/
  })
  t.throws(() => routesOf('notes', [{ answer: note, body: note }]), {
    message:
      /the schema "Note" is an answer in one place and a body in another .* declare one for each, as "Note" and "NoteBody"/
  })
  const optional = () => named('Choices', object({ a: maybe(text({ max: 1 })) }))
  t.doesNotThrow(() => routesOf('notes', [{ answer: optional() }, { answer: optional() }]), 'they are alike')
})

test('a name that another built-in plugin has is refused, unless both mean the same', async t => {
  const mine = record(plugin('mine', [{ answer: note }]), { id: 'mine', builtIn: true })
  const other = plugin('other', [{ answer: named('Note', object({})) }])
  const theirs = record(other, { id: 'other', builtIn: true })
  t.match(schemaConflicts(theirs, [mine]), [/"Note" of POST \/api\/other\/0.*POST \/api\/mine\/0/])
  t.same(schemaConflicts(mine, [mine]), [])
})

test("names of third-party plugins begin with the plugin's id, so they are nobody else's", async t => {
  const records = ['one', 'two'].map(id =>
    record(plugin(id, [{ answer: note }], '/api/x'), { id, builtIn: false })
  )
  const own = routesOf('notes', [{ answer: named('Note', object({})) }])
  t.same(schemaConflicts(records[0] ?? { routes: [] }, [{ routes: own }, ...records.slice(1)]), [])
  const api: any = describeApi([...records.flatMap(({ routes }) => routes), ...own])
  t.same(Object.keys(api.components.schemas).sort(), ['Error', 'Note', 'one.Note', 'two.Note'])
})

test('a name that no component can have is refused', async t => {
  for (const name of ['note', 'My Note', 'x.Note', '', 'Error'])
    t.throws(() => routesOf('notes', [{ answer: named(name, object({})) }]), { message: /name/ }, name)
})
