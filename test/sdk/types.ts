import {
  access,
  allow,
  definePlugin,
  event,
  extensionPoint,
  kernel,
  nullable,
  object,
  optional,
  publishedTable,
  reply,
  service,
  type TableRow,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

interface Docker {
  list(): Promise<string[]>
}
interface Mail {
  send(text: string): Promise<void>
}
const docker = service<Docker>('runtime.docker')
const mail = service<Mail>('notifications.mail')
const panels = extensionPoint<{ title: string }>('dashboard.panels')
const slots = extensionPoint<{ width: number; label?: string }, 'left' | 'right'>('dashboard.slots')
const sold = event<{
  item: string
  price: number
  note: string | null
  state: 'new' | 'used'
  buyer: string
  project: string
  parts: string[]
}>('inspect.sold')
const row = object({ id: uuid(), at: nullable(timestamp()) })

const noteTable = publishedTable('notes.note', {
  key: 'id',
  columns: { id: 'uuid', pages: 'integer', deleted_at: 'timestamptz null' }
})
type Note = TableRow<typeof noteTable>
export const note: Note = { id: '', pages: 1, deleted_at: null }
export const deleted: TableRow<typeof noteTable, 'deleted_at'> = { deleted_at: new Date() }
// @ts-expect-error a column that may not be null
export const unknown: TableRow<typeof noteTable, 'id'> = { id: null }
// @ts-expect-error no such column
export type Title = TableRow<typeof noteTable, 'title'>
// @ts-expect-error the key is no column
publishedTable('notes.note', { key: 'number', columns: { id: 'uuid' } })
// @ts-expect-error no such type
publishedTable('notes.note', { key: 'id', columns: { id: 'uid' } })
// @ts-expect-error the schema is missing
publishedTable('note', { key: 'id', columns: { id: 'uuid' } })

export default definePlugin({
  id: 'inspect',
  needs: { db: kernel.database, docker, mail: optional(mail), panels, slots },
  config: object({ limit: Type.Integer({ default: 100 }) }),
  start({ use, config, onStop }) {
    const timer = setInterval(() => {
      void use.mail.get()?.send(use.panels.get('x')?.title ?? '')
      use.slots.get('left')
      // @ts-expect-error the extension point has no such key
      use.slots.get('lfet')
    }, 1000)
    onStop(() => clearInterval(timer))
    return { list: async () => (await use.docker.list()).slice(0, config.limit) }
  },
  provides(provide, self) {
    provide(docker, self)
    // @ts-expect-error the implementation does not fit the contract
    provide(mail, self)
  },
  contributes(contribute) {
    contribute(panels, 'inspect', { title: 'Inspect' })
    // @ts-expect-error the contribution does not fit the extension point
    contribute(panels, 'inspect', { title: 1 })
    contribute(slots, 'left', { width: 1 })
    // @ts-expect-error the extension point has no such key
    contribute(slots, 'lfet', { width: 1 })
    // @ts-expect-error a part of the contribution is missing
    contribute(slots, 'left', {})
    // @ts-expect-error the key is for the plugin that keeps users
    contribute(access.credentials, 'idenity', { find: async () => undefined })
  },
  notifications(notification) {
    const kind = { type: 'a.b', label: 'l', description: 'd', group: 'g', severity: 'ok' } as const
    notification(sold, {
      ...kind,
      when: { state: ['new', 'used'], price: 1 },
      audience: { user: 'buyer', project: 'project' },
      preference: 'deploy_success',
      title: '{item} for {price}: {note}',
      body: 'a {state}',
      link: '/projects/{project}'
    })
    notification(sold, { ...kind, audience: 'admins', title: 'sold' })
    // @ts-expect-error the event has no such field
    notification(sold, { ...kind, audience: 'admins', title: '{itme} was sold' })
    // @ts-expect-error a list is no word
    notification(sold, { ...kind, audience: 'admins', title: '{parts}' })
    // @ts-expect-error the event has no such field
    notification(sold, { ...kind, audience: 'admins', title: 'sold', link: '/{projectId}' })
    // @ts-expect-error a price is no id
    notification(sold, { ...kind, audience: { project: 'price' }, title: 'sold' })
    // @ts-expect-error no such state
    notification(sold, { ...kind, audience: 'admins', when: { state: 'old' }, title: 'sold' })
    // @ts-expect-error nobody can decline that
    notification(sold, { ...kind, audience: 'admins', preference: 'sales', title: 'sold' })
    // @ts-expect-error it says not for whom
    notification(sold, { ...kind, title: 'sold' })
  },
  events(on) {
    on(sold, data => void data.item)
    on.notification((raised, self) => void [raised.title, raised.occurredAt.getTime(), self.list()])
  },
  routes(route) {
    route({
      method: 'GET',
      url: '/api/x/:a/y/:n',
      summary: 's',
      access: allow.token('read', { role: 'admin', project: 'none' }),
      handler: (request, self) => [request.params.a + request.params.n, self.list()]
    })
    route({
      method: 'POST',
      url: '/api/projects/:projectId/applications/:applicationId',
      summary: 's',
      access: allow.token('read', {
        project: { param: 'projectId', chain: { applicationId: 'application' } }
      }),
      schema: { body: object({ name: Type.String() }), response: { 200: row, 202: row } },
      handler: request =>
        reply(202, { id: request.project + request.body.name + request.params.applicationId, at: new Date() })
    })
    route({
      method: 'GET',
      url: '/api/rows',
      summary: 's',
      access: allow.session({ project: 'none' }),
      schema: { response: { 200: row } },
      // @ts-expect-error the answer does not fit the response schema
      handler: request => ({ id: request.caller.sessionId })
    })
    // @ts-expect-error access is required
    route({ method: 'GET', url: '/api/x', summary: 's', handler: () => 1 })
    // @ts-expect-error the project rule is required
    route({ method: 'GET', url: '/api/x', summary: 's', access: allow.token('read', {}), handler: () => 1 })
    route({
      method: 'GET',
      url: '/api/x',
      summary: 's',
      // @ts-expect-error no such scope
      access: allow.token('raed', { project: 'none' }),
      handler: () => 1
    })
    route({
      method: 'GET',
      url: '/api/projects/:projectId/apps',
      summary: 's',
      // @ts-expect-error the project rule names a parameter this url does not have
      access: allow.token('read', { project: { param: 'projektId' } }),
      handler: () => 1
    })
    route({
      method: 'GET',
      url: '/api/x/:a',
      summary: 's',
      access: allow.session({ project: 'none' }),
      // @ts-expect-error no such parameter
      handler: request => request.params.b
    })
    route({
      method: 'GET',
      url: '/api/x',
      summary: 's',
      access: allow.token('read', { project: 'none' }),
      // @ts-expect-error a token may call this: there may be no session
      handler: request => request.caller.sessionId
    })
    route.list({
      url: '/api/projects/:projectId/rows',
      summary: 's',
      items: row,
      query: { q: Type.String() },
      access: allow.token('read', { project: { param: 'projectId' } }),
      handler: ({ project, query, page }) => ({
        rows: [{ id: project + query.q, at: null }],
        total: page.limit
      })
    })
    route.list({
      url: '/api/rows',
      summary: 's',
      items: row,
      access: allow.token('read', { project: 'none' }),
      // @ts-expect-error a row does not fit the schema of the items
      handler: () => ({ rows: [{ id: 1, at: null }], total: 1 })
    })
    // @ts-expect-error access is required
    route.list({ url: '/api/rows', summary: 's', items: row, handler: () => ({ rows: [], total: 0 }) })
    route({
      method: 'GET',
      url: '/api/x',
      summary: 's',
      access: allow.session({ project: 'none' }),
      // @ts-expect-error this route has no project
      handler: request => request.project.length
    })
  },
  channels(channel) {
    channel({
      name: 'x:inspect:{applicationId}',
      summary: 's',
      events: { a: Type.Null() },
      access: allow.token('read', { project: { of: 'application', param: 'applicationId' } })
    })
    channel({
      name: 'x:inspect:{applicationId}',
      summary: 's',
      events: { a: Type.Null() },
      // @ts-expect-error the channel has no such parameter
      access: allow.token('read', { project: { of: 'application', param: 'appId' } })
    })
  },
  jobs(job) {
    job<{ id: string }>({
      name: 'sweep',
      run: async ({ id }, { signal }, self) => {
        if (!signal.aborted && id) await self.list()
      }
    })
  }
})

// @ts-expect-error the kernel has no such service
export const misspelt = { db: kernel.databse }
