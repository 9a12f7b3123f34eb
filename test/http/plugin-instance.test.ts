import type { Log } from 'busbar/sdk'
import { test } from 'tap'
import { type InstanceParts, PluginInstance } from '../../core/http/plugin-instance.js'

test('a request that has not passed the guard reaches no handler', async t => {
  let calls = 0
  const route = {
    plugin: 'a',
    method: 'GET',
    url: '/x',
    body: 'none',
    bodyLimit: 1024,
    schema: {},
    handler: () => ++calls
  }
  const instance = await PluginInstance.create({
    ...({} as InstanceParts),
    plugin: 'a',
    routes: [route as never],
    self: {},
    log: { error: () => {} } as unknown as Log
  })
  t.teardown(async () => await instance.fastify.close())
  const answer = await instance.fastify.inject({ method: 'GET', url: '/x' })
  t.equal(answer.statusCode, 500)
  t.match(answer.json(), { message: 'a request reached an instance without passing the guard' })
  t.equal(calls, 0)
})
