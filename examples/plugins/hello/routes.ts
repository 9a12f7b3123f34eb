import { allow, readPage, reply, type RouteDeclarer } from 'busbar/sdk'
import type { GreetingService } from './greeting-service.js'
import { createBody, greeting, greetings, listQuery } from './schemas.js'

export function routes (route: RouteDeclarer<GreetingService>) {
  route({
    method: 'GET',
    url: '/api/x/hello/greetings',
    summary: 'List greetings, newest first',
    access: allow.token('read', { project: 'none' }),
    schema: { query: listQuery, response: { 200: greetings } },
    handler: ({ query }, self) => self.list(readPage(query))
  })
  route({
    method: 'POST',
    url: '/api/x/hello/greetings',
    summary: 'Greet somebody',
    access: allow.token('write', { project: 'none' }),
    schema: { body: createBody, response: { 201: greeting } },
    audit: { action: 'create_greeting', resource: 'greeting', id: { result: 'id' } },
    handler: async ({ body }, self) => reply(201, await self.greet(body.name))
  })
}
