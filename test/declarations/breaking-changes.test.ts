import {
  type AnyPlugin,
  allow,
  definePlugin,
  described,
  maybe,
  nullable,
  object,
  oneOf,
  type TSchema,
  Type
} from 'busbar/sdk'
import { test } from 'tap'
import { describeChannels } from '../../core/declarations/asyncapi.js'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'
import { breakingChanges } from '../../scripts/compatibility/breaking-changes.js'

const { String: text, Integer, Number: number, Null } = Type
const full = { status: 409, code: 'E_NOTES_FULL', message: 'there are too many' }
const read = allow.token('read', { project: 'none' })

const note = {
  text: text({ maxLength: 100 }),
  kind: oneOf(['long', 'short']),
  times: Integer(),
  reader: nullable(text()),
  tags: Type.Array(object({ name: text() }))
}
const before = {
  route: {
    method: 'POST',
    url: '/api/notes/:noteId',
    operationId: 'WriteNote',
    summary: 'Write a note',
    access: allow.token('deploy', { project: 'none' }),
    handler: () => null,
    problems: [full],
    responseHeaders: { 'X-Notes': described(Integer(), 'How many.') },
    schema: {
      query: object({ page: maybe(Integer({ maximum: 9 })) }),
      body: object({ ...note, loud: maybe(Type.Boolean()) }),
      response: { 200: object(note), 202: object(note) }
    }
  },
  channel: {
    name: 'notes',
    summary: 'Notes',
    access: read,
    events: { note: object(note), gone: Null() }
  }
}
const descriptionsOf = ({ route, channel }: { route?: object; channel?: object }) => {
  const plugin: AnyPlugin = definePlugin({
    id: 'notes',
    routes(declare) {
      if (route !== undefined) declare(route as never)
    },
    channels(declare) {
      if (channel !== undefined) declare(channel as never)
    }
  })
  const { routes, channels } = record(plugin, { id: 'notes', builtIn: true })
  return { openapi: describeApi(routes), asyncapi: describeChannels(channels) }
}
const changes = (now: { route?: object; channel?: object }): string[] =>
  breakingChanges(descriptionsOf(before), descriptionsOf(now)).map(({ of, what }) => `${of} ${what}`)
const ofRoute = (more: object): string[] => changes({ ...before, route: { ...before.route, ...more } })
const ofSchema = (more: object): string[] => ofRoute({ schema: { ...before.route.schema, ...more } })
const ofChannel = (more: object): string[] => changes({ ...before, channel: { ...before.channel, ...more } })

/** Fields that are undefined are none. */
const objectOf = (fields: Readonly<Record<string, TSchema | undefined>>) =>
  object(Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined)) as never)

const write = 'POST /api/notes/{noteId}'

test('what is only added breaks nobody', t => {
  t.same(changes(before), [])
  t.same(ofRoute({ problems: [full, { status: 409, code: 'E_NOTES_LOCKED', message: 'no' }] }), [])
  t.same(ofRoute({ access: read, limit: { max: 1, windowSeconds: 60 }, summary: 'Otherwise' }), [])
  t.same(ofSchema({ query: object({ page: maybe(Integer({ maximum: 90 })), more: maybe(text()) }) }), [])
  const { body } = before.route.schema
  t.same(
    ofSchema({
      body: object({
        ...body.properties,
        text: maybe(text({ maxLength: 200 })),
        times: number(),
        kind: oneOf(['long', 'short', 'none']),
        more: maybe(text())
      })
    }),
    [],
    'a body that takes more'
  )
  t.same(
    ofSchema({ response: { 200: object({ ...note, more: text() }), 202: object(note), 201: object({}) } }),
    [],
    'an answer that tells more'
  )
  t.same(ofChannel({ events: { ...before.channel.events, more: Null() } }), [])
  t.end()
})

test('an operation that is gone, called otherwise, or left to fewer, breaks clients', t => {
  t.same(changes({ channel: before.channel }), [`${write} is gone`])
  t.same(ofRoute({ operationId: 'PutNote' }), [`${write} is called PutNote instead of WriteNote`])
  t.same(ofRoute({ access: allow.token('write', { project: 'none' }) }), [
    `${write} takes no token with less than write any more`
  ])
  t.same(ofRoute({ access: allow.session({ project: 'none' }) }), [`${write} takes no token any more`])
  t.same(ofRoute({ access: allow.token('deploy', { project: 'none', role: 'admin' }) }), [
    `${write} is for the role admin only`
  ])
  const open = { ...before, route: { ...before.route, access: allow.public('a test') } }
  t.same(
    breakingChanges(descriptionsOf(open), descriptionsOf(before)).map(({ what }) => what),
    ['is public no longer']
  )
  t.end()
})

test('what a client writes and is refused breaks it', t => {
  const { body } = before.route.schema
  const ofBody = (more: object): string[] => ofSchema({ body: objectOf({ ...body.properties, ...more }) })
  t.same(ofSchema({ query: object({}) }), [`${write} takes no \`page\` any more`])
  t.same(ofSchema({ query: object({ page: maybe(Integer({ maximum: 5 })) }) }), [
    `${write} page: the value has another \`maximum\`, 5`
  ])
  t.same(ofSchema({ query: object({ page: Integer({ maximum: 9 }) }) }), [
    `${write} \`page\` is required now`
  ])
  t.same(ofBody({ loud: Type.Boolean() }), [`${write} body: \`loud\` is required now`])
  t.same(ofBody({ kind: oneOf(['long']) }), [`${write} body: \`kind\` takes short no longer`])
  t.same(ofBody({ reader: text() }), [`${write} body: \`reader\` is string instead of string or null`])
  t.same(ofBody({ text: text({ maxLength: 50 }) }), [`${write} body: \`text\` has another \`maxLength\`, 50`])
  t.same(ofBody({ text: text({ maxLength: 100, pattern: '^a' }) }), [
    `${write} body: \`text\` has another \`pattern\`, "^a"`
  ])
  t.same(ofBody({ text: undefined }), [`${write} body: \`text\` is gone`])
  t.same(ofBody({ tags: Type.Array(object({ name: Integer() })) }), [
    `${write} body: \`tags[]/name\` is integer instead of string`
  ])
  t.same(ofSchema({ body: undefined }), [`${write} takes no application/json any more`])
  t.end()
})

test('what a client reads and does not find breaks it', t => {
  const ofAnswer = (more: object): string[] =>
    ofSchema({ response: { 200: objectOf({ ...note, ...more }), 202: object(note) } })
  t.same(ofSchema({ response: { 200: object(note) } }), [`${write} answers no 202 any more`])
  t.same(ofAnswer({ text: undefined }), [`${write} 200: \`text\` is gone`])
  t.same(ofAnswer({ text: maybe(text()) }), [`${write} 200: \`text\` may be missing now`])
  t.same(ofAnswer({ times: number() }), [`${write} 200: \`times\` is number instead of integer`])
  t.same(ofAnswer({ text: nullable(text()) }), [`${write} 200: \`text\` is string or null instead of string`])
  t.same(ofAnswer({ tags: Type.Array(object({})) }), [`${write} 200: \`tags[]/name\` is gone`])
  t.same(ofRoute({ responseHeaders: {} }), [
    `${write} 200 has no \`X-Notes\` any more`,
    `${write} 202 has no \`X-Notes\` any more`
  ])
  t.same(ofRoute({ problems: [] }), [`${write} refuses nothing with 409 \`E_NOTES_FULL\` any more`])
  t.end()
})

test('a channel that is gone, tells less or is left to fewer breaks those who hear it', t => {
  t.same(changes({ route: before.route }), ['channel notes is gone'])
  t.same(ofChannel({ events: { note: object(note) } }), ['channel notes has no event `gone` any more'])
  t.same(ofChannel({ events: { note: object({ ...note, text: Integer() }), gone: Null() } }), [
    'channel notes note: `data/text` is integer instead of string'
  ])
  t.same(ofChannel({ access: allow.token('write', { project: 'none' }) }), [
    'channel notes is not for tokens with read any more'
  ])
  t.end()
})
