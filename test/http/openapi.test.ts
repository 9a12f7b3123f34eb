import { Readable } from 'node:stream'
import { Validator } from '@seriousme/openapi-schema-validator'
import { allow, definePlugin, download, sse } from 'busbar/sdk'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { operations } from '../contract/contract.js'
import { probe, probeManifest } from '../kernel/probe.js'

/** A plugin with what is no JSON: a socket, a stream, a file; and a route with a budget. */
const teller = definePlugin({
  id: 'teller',
  routes(route) {
    route({
      method: 'GET',
      url: '/api/teller/tail',
      summary: 'Tail',
      access: allow.token('read', { project: 'none' }),
      produces: 'text/event-stream',
      handler: () =>
        sse(
          (async function* () {
            yield { data: 'x' }
          })()
        )
    })
    route({
      method: 'GET',
      url: '/api/teller/file',
      summary: 'File',
      access: allow.public('a test'),
      produces: 'text/csv',
      limit: { max: 7, windowSeconds: 60 },
      handler: () => download(Readable.from(['a,b']), { type: 'text/csv', filename: 'a.csv' })
    })
  },
  sockets(socket) {
    socket({
      url: '/api/ws/teller/:sessionId',
      summary: 'Talk',
      access: allow.session({ role: 'admin', project: 'never-pinned' }),
      handler: async () => {}
    })
  }
})

let k: TestKernel
const description = async (): Promise<any> => (await k.as.anonymous().get('/api/openapi.json')).body

test('the description is public, of OpenAPI 3.1.0, and valid', async t => {
  k = await createTestKernel({
    inline: [
      { manifest: probeManifest, definition: probe },
      { manifest: { id: 'teller' }, definition: teller }
    ]
  })
  const api = await description()
  t.match(api, { openapi: '3.1.0', info: { title: 'Busbar API', version: '1.0.0' } })
  t.same(await new Validator().validate(api), { valid: true })
})

test('no body is described as one that refuses fields which it does not name, as they are ignored', async t => {
  const bodies = JSON.stringify(
    Object.values((await description()).paths).flatMap((path: any) =>
      Object.values(path).flatMap(({ requestBody }: any) => requestBody ?? [])
    )
  )
  t.match(bodies, /"x-required"/)
  t.notMatch(bodies, /"additionalProperties":false/)
  const ann = await k.as.session('ann')
  const { body } = await ann.post('/api/projects', { name: 'A', slug: 'ignoring', unknown: { deep: 1 } })
  t.match(body, { name: 'A', slug: 'ignoring' })
  t.notHas(body, { unknown: {} })
  t.match(await ann.put(`/api/projects/${body.id}`, { unknown: 1 }), { status: 200, body: { name: 'A' } })
})

test('every route that is served is described, with its security from the record the guard reads', async t => {
  const { paths } = await description()
  const served = k.routes().filter(({ isServed, record }) => isServed && record.documented)
  for (const {
    record: { method, url, access }
  } of served) {
    const operation = paths[url.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    t.ok(operation, `${method} ${url}`)
    const wanted =
      access.kind === 'public'
        ? []
        : access.kind === 'session'
          ? [{ session: [] }]
          : [{ token: [access.scope] }, { session: [] }]
    t.same(operation?.security, wanted)
  }
  t.match(paths['/api/ws']?.get, { security: [{ token: ['read'] }, { session: [] }], responses: { 101: {} } })
})

test('sockets, streams and files are described as what they are', async t => {
  const { paths } = await description()
  t.match(paths['/api/ws/teller/{sessionId}'].get, {
    security: [{ session: [] }],
    'x-role': 'admin',
    parameters: [{ name: 'sessionId', in: 'path', required: true }],
    responses: { 101: {}, 401: {}, 403: {}, 404: {} }
  })
  t.match(paths['/api/teller/tail'].get.responses['200'].content, {
    'text/event-stream': { schema: { type: 'string' } }
  })
  t.match(paths['/api/teller/file'].get, {
    responses: { 200: { content: { 'text/csv': {} } } },
    'x-rate-limit': { max: 7, windowSeconds: 60 }
  })
})

test('operations are named as the contract names them, and each name is of one operation', async t => {
  const { paths } = await description()
  const names = Object.entries<any>(paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, { operationId }]) => ({
      operation: `${method.toUpperCase()} ${path}`,
      operationId: operationId as string
    }))
  )
  for (const { operation, operationId } of names) {
    const named = operations.get(operation)?.id
    if (named !== undefined) t.equal(operationId, named, operation)
  }
  const ids = names.map(({ operationId }) => operationId)
  t.same(
    ids.filter((id, at) => ids.indexOf(id) !== at),
    []
  )
  const unnamed = names.filter(
    ({ operation, operationId }) =>
      !/^[A-Z]/.test(operationId) && !/\/api\/(probe|teller|ws\/teller)\//.test(operation)
  )
  t.same(unnamed, [], 'every built-in operation declares its name')
})

test('every refusal an operation can answer is told, the rate limit in plain text', async t => {
  const { paths, components } = await description()
  const contentOf = (response: any): unknown =>
    (response?.$ref === undefined
      ? response
      : components.responses[response.$ref.replace('#/components/responses/', '')]
    )?.content
  for (const [path, operations] of Object.entries<any>(paths)) {
    for (const [method, { security, responses, requestBody }] of Object.entries<any>(operations)) {
      const wanted = [
        ...(security.length > 0 ? ['401', '403', '404'] : []),
        ...(requestBody === undefined ? [] : ['413']),
        ...(path.includes('{') ? ['400'] : [])
      ]
      for (const status of wanted)
        t.match(
          contentOf(responses[status]),
          { 'application/json': { schema: {} } },
          `${method} ${path} ${status}`
        )
      t.match(contentOf(responses['429']), { 'text/plain': {} })
    }
  }
})

test('no query and no body field is marked required; the truth is in x-required', async t => {
  const { paths } = await description()
  const things = paths['/api/probe/things'].post.requestBody.content['application/json'].schema
  t.same(things['x-required'], ['name'])
  const offenders: string[] = []
  for (const [path, operations] of Object.entries<any>(paths)) {
    for (const [method, { parameters = [], requestBody }] of Object.entries<any>(operations)) {
      if (parameters.some((parameter: any) => parameter.in === 'query' && parameter.required === true))
        offenders.push(`${method} ${path} query`)
      if (JSON.stringify(requestBody ?? {}).includes('"required":')) offenders.push(`${method} ${path} body`)
    }
  }
  t.same(offenders, [])
})

test('pin rejection and the admin role are told in the description of an operation', async t => {
  const { paths } = await description()
  t.match(paths['/api/projects/{projectId}'].get.description, /pinned to other projects is refused \(403\)/)
  t.notMatch(
    paths['/api/projects/{projectId}/sharing'].put.description,
    /pinned/,
    'no token may do it at all'
  )
  t.match(paths['/api/plugins'].get.description, /admin role is required/)
})

test('the role in a project that an operation takes is told, and who may act on themselves without it', async t => {
  const { paths } = await description()
  const project = '/api/projects/{projectId}'
  t.match(
    paths[`${project}/members/{userId}`].delete.description,
    /Only the owner of the project, admins, and the user `userId` may do this\./
  )
  t.match(
    paths[`${project}/members`].put.description,
    /Only the owner of the project and admins may do this\./,
    'the exception is of the one operation'
  )
  t.match(
    paths[`${project}/applications/{applicationId}/deploy`].post.description,
    /Viewers of the project are refused \(403\)\./
  )
  t.notMatch(paths[project].get.description, /owner|Viewers/, 'whoever sees the project may read it')
})

test('a plugin that is off is not described', async t => {
  await k.disable('probe')
  t.notOk((await description()).paths['/api/probe/echo'])
  await k.enable('probe')
  t.ok((await description()).paths['/api/probe/echo'])
})

test('the platform stops', async () => {
  await k.close()
})
