import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AnyPlugin,
  allow,
  definePlugin,
  kernel,
  list,
  maybe,
  nullable,
  object,
  pagingQuery,
  type RouteSpec,
  reply,
  sse,
  Type,
  text,
  timestamp
} from 'busbar/sdk'

/** What `/api/probe/slow` waits for, ten seconds at most. */
export const slowRequests = { waiting: 0, release: () => {} }

/** A plugin with one of everything, for tests of the kernel. */
export const probe = definePlugin({
  id: 'probe',
  needs: { clock: kernel.clock },
  start: () => ({ calls: 0, release: () => {} }),
  routes(route) {
    route({
      method: 'GET',
      url: '/api/probe/echo',
      summary: 'Echo',
      access: allow.public('a test'),
      schema: {
        query: object({ n: maybe(Type.Integer()) }),
        response: { 200: object({ n: nullable(Type.Integer()), ip: Type.String(), secure: Type.Boolean() }) }
      },
      handler: ({ query, ip, secure }) => ({ n: query.n ?? null, ip, secure, hidden: 'never shown' })
    })
    route({
      method: 'GET',
      url: '/api/probe/numbers',
      summary: 'List Numbers',
      access: allow.public('a test'),
      schema: {
        query: object({ n: maybe(Type.Integer()) }),
        response: { 200: list(object({ n: Type.Integer(), name: nullable(Type.String()) })) }
      },
      handler: ({ query }) =>
        reply(
          200,
          Array.from({ length: query.n ?? 0 }, (_, n) => ({ n, name: null, hidden: 'never shown' })),
          { headers: { 'X-Total-Count': String(query.n) } }
        )
    })
    route({
      method: 'POST',
      url: '/api/probe/things',
      summary: 'Create Thing',
      access: allow.token('write', { project: 'none' }),
      idempotent: true,
      audit: { action: 'create_thing', resource: 'thing', id: { result: 'id' } },
      schema: {
        body: object({
          name: text({ min: 1, max: 10 }),
          size: maybe(nullable(Type.Integer())),
          tags: maybe(list(object({ key: Type.String() })))
        }),
        response: {
          201: object({
            id: Type.String(),
            at: timestamp(),
            name: Type.String(),
            size: nullable(Type.Integer()),
            keys: list(Type.String()),
            calls: Type.Integer()
          })
        }
      },
      handler: ({ body }, self) => ({
        id: '6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d11',
        at: new Date('2026-01-02T03:04:05.678Z'),
        name: body.name,
        size: body.size === undefined ? -1 : body.size,
        keys: Object.keys(body),
        calls: ++self.calls
      })
    })
    route({
      method: 'GET',
      url: '/api/probe/slow',
      summary: 'Slow',
      access: allow.public('a test'),
      handler: async () => {
        slowRequests.waiting += 1
        await Promise.race([
          sleep(10_000),
          new Promise<void>(resolve => {
            slowRequests.release = resolve
          })
        ])
        return { done: true }
      }
    })
    route({
      method: 'GET',
      url: '/api/probe/never',
      summary: 'Never',
      access: allow.public('a test'),
      timeoutMs: 200,
      handler: async () => {
        await new Promise(() => {})
      }
    })
    route({
      method: 'GET',
      url: '/api/probe/throws',
      summary: 'Throws',
      access: allow.public('a test'),
      handler: () => {
        throw new Error('the inside of the platform')
      }
    })
    route({
      method: 'GET',
      url: '/api/probe/events',
      summary: 'Events',
      access: allow.public('a test'),
      handler: ({ signal }) =>
        sse(
          (async function* () {
            for (let n = 0; !signal.aborted; n++) {
              yield { event: 'tick', data: { n } }
              await sleep(20)
            }
          })()
        )
    })
    route({
      method: 'POST',
      url: '/api/probe/nobody',
      summary: 'No body',
      access: allow.public('a test'),
      schema: { response: { 204: null } },
      handler: () => reply(204, null)
    })
    route({
      method: 'POST',
      url: '/api/probe/raw',
      summary: 'Raw',
      access: allow.public('a test'),
      body: 'raw',
      bodyLimit: 1000,
      handler: ({ body }) => ({ bytes: (body as Buffer).length })
    })
    route({
      method: 'GET',
      url: '/api/probe/limited',
      summary: 'Limited',
      access: allow.public('a test'),
      limit: { max: 2, windowSeconds: 60 },
      handler: () => ({ ok: true })
    })
    route({
      method: 'GET',
      url: '/api/probe/admin',
      summary: 'Admin',
      access: allow.token('read', { role: 'admin', project: 'none' }),
      handler: () => ({ ok: true })
    })
    route({
      method: 'POST',
      url: '/api/probe/session/:itemId',
      summary: 'Session',
      access: allow.session({ project: 'none' }),
      schema: { body: object({ name: Type.String() }) },
      handler: () => ({ ok: true })
    })
    route({
      method: 'GET',
      url: '/api/probe/list',
      summary: 'List',
      access: allow.token('read', { project: 'filtered' }),
      schema: { query: object(pagingQuery) },
      handler: ({ reach }) => reach
    })
  },
  channels(channel) {
    channel({
      name: 'probe',
      summary: 'Probe',
      events: { ping: Type.Any(), over: Type.Any() },
      endsWith: 'over',
      access: allow.token('read', { project: 'none' })
    })
  }
})

export const probeManifest = { id: 'probe', grants: ['clock'] }

/** A plugin from a few routes, for one test. */
export const pluginOf = (
  id: string,
  routes: Array<RouteSpec<string, never, {}, object>>,
  more: Partial<AnyPlugin> = {}
): { manifest: { id: string }; definition: AnyPlugin } => ({
  manifest: { id },
  definition: definePlugin({
    id,
    ...more,
    routes: route => {
      for (const spec of routes) route(spec as never)
    }
  }) as AnyPlugin
})
