import { allow, pagedList, type RouteDeclarer, reply } from 'busbar/sdk'
import type { GreetingService } from './greeting-service.js'
import { createBody, greeting } from './schemas.js'

export function routes(route: RouteDeclarer<GreetingService>) {
  route.list({
    url: '/api/x/hello/greetings',
    operationId: 'ListGreetings',
    summary: 'List greetings, newest first',
    access: allow.token('read', { project: 'none' }),
    items: greeting,
    page: pagedList,
    handler: ({ page }, self) => self.list(page)
  })
  route({
    method: 'POST',
    url: '/api/x/hello/greetings',
    operationId: 'CreateGreeting',
    summary: 'Greet a person',
    access: allow.token('write', { project: 'none' }),
    schema: { body: createBody, response: { 201: greeting } },
    audit: { action: 'create_greeting', resource: 'greeting', id: { result: 'id' } },
    handler: async ({ body }, self) => reply(201, await self.greet(body.name))
  })
}
