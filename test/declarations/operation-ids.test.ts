import { type AnyPlugin, allow, definePlugin } from 'busbar/sdk'
import { test } from 'tap'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'

const plugin = (id: string, ids: ReadonlyArray<string | undefined>, prefix = '/api'): AnyPlugin =>
  definePlugin({
    id,
    routes(route) {
      for (const [at, operationId] of ids.entries()) {
        route({
          method: 'GET',
          url: `${prefix}/${id}/${at}`,
          ...(operationId !== undefined && { operationId }),
          summary: 'Read',
          access: allow.public('a test'),
          handler: () => null
        })
      }
    }
  })
const described = (definition: AnyPlugin, builtIn: boolean): string[] => {
  const { paths } = describeApi(record(definition, { id: definition.id, builtIn }).routes) as any
  return Object.values<any>(paths).map(({ get }) => get.operationId)
}

test('an operation has the name that it declares, or one made of method and path', t => {
  t.same(described(plugin('notes', ['ListNotes', undefined]), true), ['ListNotes', 'get_notes_1'])
  t.same(
    described(plugin('notes', ['ListNotes'], '/api/x'), false),
    ['notes.ListNotes'],
    'of a third-party plugin it begins with the plugin'
  )
  t.end()
})

test('one name for two operations, and what is no name, are refused', t => {
  t.throws(() => described(plugin('notes', ['ListNotes', 'ListNotes']), true), {
    message: /GET \/api\/notes\/1: its operationId "ListNotes" is the one of GET \/api\/notes\/0/
  })
  for (const name of ['listNotes', 'List Notes', '', 'x.Y'])
    t.throws(() => described(plugin('notes', [name]), true), { message: /operationId is/ }, name)
  t.end()
})
