import { Validator } from '@seriousme/openapi-schema-validator'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { probe, probeManifest } from '../kernel/probe.js'

let k: TestKernel
const description = async (): Promise<any> => (await k.as.anonymous().get('/api/openapi.json')).body

test('the description is public, of OpenAPI 3.1.0, and valid', async t => {
  k = await createTestKernel({ inline: [{ manifest: probeManifest, definition: probe }] })
  const api = await description()
  t.match(api, { openapi: '3.1.0', info: { title: 'Busbar API', version: '1.0.0' } })
  t.same(await new Validator().validate(api), { valid: true })
})

test('every route that is served is described, with its security from the record the guard reads', async t => {
  const { paths } = await description()
  const served = k.kernel.edge.table.entries.filter(({ instance }) => instance !== undefined)
  for (const { record: { method, url, access } } of served) {
    const operation = paths[url.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    t.ok(operation, `${method} ${url}`)
    const wanted = access.kind === 'public' ? [] : access.kind === 'session' ? [{ session: [] }] : [{ token: [access.scope] }, { session: [] }]
    t.same(operation?.security, wanted)
  }
  t.ok(paths['/api/ws']?.get)
})

test('no query and no body field is marked required; the truth is in x-required', async t => {
  const { paths } = await description()
  const things = paths['/api/probe/things'].post.requestBody.content['application/json'].schema
  t.same(things['x-required'], ['name'])
  const offenders: string[] = []
  for (const [path, operations] of Object.entries<any>(paths)) {
    for (const [method, { parameters = [], requestBody }] of Object.entries<any>(operations)) {
      if (parameters.some((parameter: any) => parameter.in === 'query' && parameter.required === true)) offenders.push(`${method} ${path} query`)
      if (JSON.stringify(requestBody ?? {}).includes('"required":')) offenders.push(`${method} ${path} body`)
    }
  }
  t.same(offenders, [])
})

test('pin rejection and the admin role are told in the description of an operation', async t => {
  const { paths } = await description()
  t.match(paths['/api/projects/{projectId}'].get.description, /pinned to other projects is refused \(403\)/)
  t.match(paths['/api/plugins'].get.description, /admin role is required/)
})

test('a plugin that is off is not described', async t => {
  await k.kernel.reconciler.disable('probe', {})
  t.notOk((await description()).paths['/api/probe/echo'])
  await k.kernel.reconciler.enable('probe')
  t.ok((await description()).paths['/api/probe/echo'])
})

test('the platform stops', async () => { await k.close() })
