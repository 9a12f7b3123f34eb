import { type AnyPlugin, allow, definePlugin, described, named, object, Type } from 'busbar/sdk'
import { test } from 'tap'
import { describeChannels } from '../../core/declarations/asyncapi.js'
import { record } from '../../core/declarations/recorder.js'

const note = named('Note', object({ text: described(Type.String(), 'What it says.') }), {
  description: 'A note was written.'
})
const plugin = (id: string, ...specs: object[]): AnyPlugin =>
  definePlugin({
    id,
    channels(channel) {
      for (const spec of specs)
        channel({
          name: 'notes:{deploymentId}',
          summary: 'Notes as they are written',
          access: allow.token('deploy', { project: { of: 'deployment', param: 'deploymentId' } }),
          events: { note, done: Type.Null() },
          ...spec
        } as never)
    }
  })
const channelsOf = (definition: AnyPlugin, builtIn = true) =>
  record(definition, { id: definition.id, builtIn, kinds: ['deployment'] }).channels

test('a channel is described with its address, its parameter, who may hear it, and a message for each event', t => {
  const api: any = describeChannels(
    channelsOf(plugin('notes', { endsWith: 'done', description: 'One at a time.' }))
  )
  const channel = api.channels.notes_deploymentId
  t.match(channel, {
    address: 'notes:{deploymentId}',
    summary: 'Notes as they are written.',
    parameters: { deploymentId: { description: /`id` of the deployment/ } },
    messages: { note: { $ref: '#/components/messages/notes_deploymentId.note' } },
    'x-plugin': 'notes',
    'x-scope': 'deploy'
  })
  t.match(
    channel.description,
    /^One at a time\.\n\nAfter `done` nothing comes.*\n\nA token with the scope `deploy`/s
  )
  t.notMatch(channel.description, /403/, 'a channel has no statuses')
  t.match(api.components.messages['notes_deploymentId.note'], {
    name: 'note',
    summary: 'A note was written.',
    payload: {
      properties: {
        event: { const: 'note' },
        data: { $ref: '#/components/schemas/Note' }
      },
      required: ['channel', 'event', 'data']
    }
  })
  t.match(api.components.schemas.Note, { properties: { text: { description: 'What it says.' } } })
  t.match(api.operations['send.notes_deploymentId'], {
    action: 'send',
    channel: { $ref: '#/channels/notes_deploymentId' },
    messages: [
      { $ref: '#/channels/notes_deploymentId/messages/note' },
      { $ref: '#/channels/notes_deploymentId/messages/done' }
    ]
  })
  t.end()
})

test('every reference leads somewhere, and channels that differ by an id alone are two', t => {
  const api: any = describeChannels(
    channelsOf(
      plugin(
        'notes',
        {},
        { name: 'notes', access: allow.token('read', { project: 'none' }) },
        { name: 'notes:all', access: allow.token('read', { project: 'none', role: 'admin' }) },
        { name: 'notes:deployment', access: allow.token('read', { project: 'none' }) },
        { name: 'connection', access: allow.token('read', { project: 'none' }) }
      )
    )
  )
  t.same(Object.keys(api.channels).sort(), [
    'Connection',
    'connection',
    'notes',
    'notes.all',
    'notes.deployment',
    'notes_deploymentId'
  ])
  t.equal(api.channels['notes.all']['x-role'], 'admin')
  const references = [...JSON.stringify(api).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(match => match[1] ?? '')
  t.ok(references.length > 20)
  for (const reference of references)
    t.ok(
      reference.split('/').reduce<any>((value, key) => value?.[key], api),
      reference
    )
  t.end()
})

test("names of schemas of third-party plugins begin with the plugin's id; two of one name are refused", t => {
  const named2 = named('Note', object({}))
  const third = { name: 'x:mine:notes', access: allow.token('read', { project: 'none' }) }
  const api: any = describeChannels([
    ...channelsOf(plugin('notes', {})),
    ...channelsOf(plugin('mine', { ...third, events: { note: named2 } }), false)
  ])
  t.same(Object.keys(api.components.schemas).sort(), ['Note', 'mine.Note'])
  t.throws(
    () => channelsOf(plugin('notes', {}, { name: 'notes', events: { other: named2 }, access: third.access })),
    /the schema "Note" of channel notes .* is not the one of channel notes:\{deploymentId\}/
  )
  t.end()
})

test('a channel whose events have no schemas is refused, with what it should have', t => {
  const fault = (more: object): string => {
    try {
      channelsOf(plugin('notes', more))
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  for (const events of [['note'], {}, undefined, null, 'note'])
    t.match(fault({ events }), /events has the schema of each event's data: \{ greeted: greeting \}/)
  t.match(fault({ events: { note: 1 } }), /the schema of its event "note" is not valid/)
  t.match(fault({ events: { 'Not a name': {} } }), /"Not a name" is no name of an event/)
  t.match(fault({ endsWith: 'over' }), /endsWith "over" is not among its events/)
  t.match(fault({ endsWith: 'toString' }), /endsWith "toString" is not among its events/)
  t.match(fault({ summary: '' }), /it has no summary/)
  t.match(fault({ description: 1 }), /description is text/)
  t.end()
})
