import { type TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from '../../deployments/test/deploy-lab.js'
import { ask } from '../../direct/test/origin.js'
import { all, rowsOf, Stream } from './requests-lab.js'

const server = `
require('node:http').createServer((request, response) => response.end(JSON.stringify(request.headers))).listen(8080)
`

test('a request to a deployed application is told on its channel and kept, with the id that the application got', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const files = { ...sample('v0'), 'server.js': server }
  const web = await lab.application('web', files)
  t.match(await web.deployed(), { status: 'success' })
  const admin: TestClient = await lab.k.as.session()
  const [first] = (await admin.get(`${web.path}/addresses`)).body as Array<{ url: string }>
  const { hostname, port } = new URL(first?.url ?? '')
  const socket = await lab.k.socket(admin)
  socket.subscribe(`requests:${web.id}`)
  const stream = await Stream.open(admin, `${all}/stream`)
  await until(() => lab.k.hasSubscribers(`requests:${web.id}`), 'somebody listens')
  const answer = await ask(Number(port), {
    path: '/hello?token=s3cr3t&page=2',
    headers: { Host: hostname, 'X-Request-Id': 'mine' }
  })
  t.equal(answer.status, 200)
  const id = (JSON.parse(answer.body) as Record<string, string>)['x-request-id']
  const wanted = {
    id,
    application_id: web.id,
    hostname,
    method: 'GET',
    path: '/hello?token=[REDACTED]&page=2',
    status_code: 200,
    response_size: answer.body.length,
    client_ip: '127.0.0.1'
  }
  t.match(await socket.next(({ event }) => event === 'request'), { data: wanted })
  await stream.has(1)
  t.match(stream.events[0]?.data, wanted)
  t.match(await rowsOf(admin, `${web.path}/requests`), [wanted])
  stream.close()

  await t.test('what was just answered when the platform stops is kept', async t => {
    for (let n = 0; n < 20; n++) await ask(Number(port), { path: `/${n}`, headers: { Host: hostname } })
    await lab.restart()
    const after = await rowsOf(await lab.k.as.session(), `${web.path}/requests`, '?limit=200')
    t.equal(after.length, 21)
  })

  await t.test('and while the plugin is off requests are answered all the same', async t => {
    const again: TestClient = await lab.k.as.session()
    await lab.k.disable('requests')
    const url = await until(async () => {
      lab.k.resetRateLimits()
      const [found] = (await again.get(`${web.path}/addresses`)).body as Array<{ url: string }>
      return found === undefined || found.url.includes('null') ? undefined : found.url
    }, 'the proxy listens')
    const { status, body } = await ask(Number(new URL(url).port), {
      path: '/off',
      headers: { Host: hostname }
    })
    t.equal(status, 200)
    t.match(JSON.parse(body), { 'x-request-id': /^[0-9a-f-]{36}$/ }, 'and have an id')
    t.match(await again.get(all), { status: 404, body: { code: 'E_PLUGIN_OFF' } })
  })
})
