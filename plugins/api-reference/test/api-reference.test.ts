import { readFile } from 'node:fs/promises'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { validatorOf } from '../../../core/schemas/schemas.js'
import { pageFiles } from '../page-files.js'

/** Written for the browser, in JavaScript. */
const script = async (name: string): Promise<any> =>
  await import(new URL(`../page/${name}`, import.meta.url).href)
const { operationsOf } = await script('description.js')
const { chipsOf } = await script('operation.js')
const { curlOf } = await script('samples.js')
const { exampleOf, childrenOf } = await script('schema.js')

let k: TestKernel
let operations: any[]
const operation = (method: string, path: string): any =>
  operations.find(one => one.method === method && one.path === path)

test('the page is public, is HTML, and may load nothing but its own files', async t => {
  k = await createTestKernel()
  // A browser that is given the bare address of the platform.
  const home = await k.as.anonymous().get('/')
  t.equal(home.status, 302)
  t.equal(home.headers.location, '/api/docs')
  const answer = await k.as.anonymous().get('/api/docs')
  t.match(answer, {
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY'
    }
  })
  const policy = answer.headers['content-security-policy'] as string
  t.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/)
  t.notMatch(policy, /unsafe|\*|https?:/)
  const html = answer.body as string
  t.notMatch(
    html,
    /https?:\/\/|<style|style=|\son\w+=|<script(?![^>]*src=)/,
    'nothing is inline or from elsewhere'
  )
})

test('every file the page names is served with its type', async t => {
  const client = k.as.anonymous()
  const { body } = await client.get('/api/docs')
  const named = [...(body as string).matchAll(/(?:src|href)="(\/api\/docs\/[^"]+)"/g)].map(
    match => match[1] ?? ''
  )
  const scripts = await Promise.all(
    Object.keys(pageFiles)
      .filter(name => name.endsWith('.js'))
      .map(async name => (await client.get(`/api/docs/${name}`)).body as string)
  )
  const imported = scripts.flatMap(text =>
    [...text.matchAll(/from '\.\/([^']+)'/g)].map(match => `/api/docs/${match[1] ?? ''}`)
  )
  for (const path of new Set([...named, ...imported])) {
    const type = pageFiles[path.replace('/api/docs/', '') as keyof typeof pageFiles]
    t.match(
      await client.get(path),
      { status: 200, headers: { 'content-type': type, 'content-security-policy': /default-src 'none'/ } },
      path
    )
  }
  t.ok(named.length >= 2 && imported.length >= 3)
})

test('what strangers wrote is shown as text: no script of the page makes elements of it, or runs it', async t => {
  for (const name of Object.keys(pageFiles).filter(file => file.endsWith('.js'))) {
    const text = await readFile(new URL(`../page/${name}`, import.meta.url), 'utf8')
    t.notMatch(
      text,
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|\.style\b|setAttribute\('on/,
      name
    )
    for (const [, href = ''] of text.matchAll(/href: (.*?) \}/g))
      t.match(href, /^`#/, `${name} links to itself`)
  }
})

test('it shows every operation of the description with who may call it', async t => {
  const { body: api } = await k.as.anonymous().get('/api/openapi.json')
  operations = operationsOf(api)
  t.equal(
    operations.length,
    Object.values<object>(api.paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0)
  )
  t.same(chipsOf(operation('get', '/api/version')), [['public', 'public']])
  t.same(chipsOf(operation('delete', '/api/projects/{projectId}')), [['session', 'session only']])
  t.same(chipsOf(operation('get', '/api/projects/{projectId}')), [
    ['scope', 'read'],
    ['pins', 'pins apply']
  ])
  t.same(chipsOf(operation('get', '/api/audit-logs')), [
    ['scope', 'read'],
    ['admin', 'admin'],
    ['pins', 'never pinned']
  ])
  t.same(chipsOf(operation('get', '/api/projects')), [
    ['scope', 'read'],
    ['pins', 'pins filter']
  ])
  t.same(chipsOf(operation('post', '/api/auth/login')), [
    ['public', 'public'],
    ['limit', '5 in 60 s']
  ])
  t.same(chipsOf(operation('get', '/api/ws')), [
    ['scope', 'read'],
    ['type', 'websocket']
  ])
})

test('a command shows the credential that the operation asks for', async t => {
  t.equal(
    curlOf(operation('get', '/api/projects')),
    'curl --fail-with-body "$BUSBAR_URL/api/projects" \\\n  -H "Authorization: Bearer $BUSBAR_TOKEN"'
  )
  t.equal(curlOf(operation('get', '/api/version')), 'curl --fail-with-body "$BUSBAR_URL/api/version"')
  t.match(
    curlOf(operation('delete', '/api/projects/{projectId}')),
    /^curl --fail-with-body -X DELETE "\$BUSBAR_URL\/api\/projects\/\$PROJECT_ID" \\\n {2}-b "token=\$SESSION; csrf_token=\$CSRF" \\\n {2}-H "X-CSRF-Token: \$CSRF"$/
  )
  t.match(curlOf(operation('post', '/api/projects')), /-d '\{"name":"Shop","slug":"shop"\}'$/)
  t.match(
    curlOf(
      operation(
        'get',
        '/api/projects/{projectId}/applications/{applicationId}/deployments/{deploymentId}/build-logs'
      )
    ),
    /^curl --fail-with-body -N /
  )
})

test('the example of a body is one that the operation takes', async t => {
  for (const { method, path, body } of operations) {
    if (body?.type !== 'application/json') continue
    const names: string[] = childrenOf(body.schema).map(({ name }: { name: string }) => name)
    t.ok(
      names.length > 0 || Object.keys(body.schema.properties ?? {}).length === 0,
      `${method} ${path as string} has fields`
    )
    const route = k
      .routes()
      .find(
        ({ record }) =>
          record.method === method.toUpperCase() && record.url === path.replace(/\{(\w+)\}/g, ':$1')
      )
    const valid = validatorOf(route?.record.schema.body as object, 'body')
    valid(exampleOf(body.schema, '', true))
    // What a pattern or a format wants beyond the type, only a person can know.
    const faults = (valid.errors ?? []).filter(({ keyword }) => keyword !== 'pattern' && keyword !== 'format')
    t.same(faults, [], `${method} ${path as string}`)
  }
})

test('turned off, it leaves the description where it is', async t => {
  await k.disable('api-reference')
  t.match(await k.as.anonymous().get('/api/docs'), { status: 404, body: { code: 'E_PLUGIN_OFF' } })
  t.equal((await k.as.anonymous().get('/api/openapi.json')).status, 200)
})

test('the platform stops', async () => {
  await k.close()
})
