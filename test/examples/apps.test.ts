import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { requireEngine } from '../../lab/engine.js'
import { openLab } from '../../plugins/deployments/test/deploy-lab.js'
import { readSample } from '../../scripts/demo/sample-app.js'

test('every sample application is built from its repository, is healthy, and answers at its direct address', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()

  /** Deploys a sample under the platform's own defaults: no capability, a read-only root. */
  async function deploy(
    name: string,
    fields: object,
    variables: ReadonlyArray<{ key: string; value: string }> = []
  ): Promise<string> {
    const application = await lab.application(name, await readSample(name), {
      container_port: null,
      ...fields
    })
    if (variables.length > 0) {
      const vars = variables.map(variable => ({ ...variable, is_secret: false }))
      t.equal((await admin.put(`${application.path}/env`, { vars })).status, 200)
    }
    const deployment = await application.deployed()
    t.match(
      deployment,
      { status: 'success', health_status: 'passing' },
      `${name}: ${deployment.error_message ?? ''}`
    )
    return (await application.read()).direct_url
  }

  await t.test('hello-node', async t => {
    const url = await deploy('hello-node', { health_check_path: '/healthz' })
    t.match(await (await fetch(url)).text(), 'Hello from version 1')
    t.same(await (await fetch(`${url}/healthz`)).json(), { healthy: true, version: '1' })
    t.equal((await fetch(`${url}/nothing`)).status, 404)
  })

  await t.test('hello-static, on a base image that a variable of the application names', async t => {
    const url = await deploy('hello-static', { health_check_path: '/' }, [
      { key: 'BASE', value: 'busybox:lab' }
    ])
    t.match(await (await fetch(url)).text(), 'Hello from a static site')
    t.equal((await fetch(`${url}/style.css`)).status, 200)
  })

  await t.test('hello-site, without a Dockerfile', async t => {
    await promisify(execFile)(join(import.meta.dirname, '../../lab/make-images.sh'), ['nginx'])
    t.equal((await admin.put('/api/plugins/builds/config', { static_image: 'nginx:lab' })).status, 200)
    const url = await deploy('hello-site', { build_type: 'static', health_check_path: '/' })
    t.match(await (await fetch(url)).text(), 'Hello from a site without a Dockerfile')
    const missing = await fetch(`${url}/nothing`)
    t.equal(missing.status, 404)
    t.match(await missing.text(), 'There is no such page')
  })

  await t.test('live-node, and its WebSocket', async t => {
    const url = await deploy('live-node', { health_check_path: '/healthz' })
    t.match(await (await fetch(url)).text(), 'Echo, version 1')
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/echo`)
    const heard: string[] = []
    socket.on('message', (data: Buffer) => {
      heard.push(data.toString())
    })
    await once(socket, 'open')
    const long = 'x'.repeat(40_000)
    for (const text of ['one', long]) socket.send(text)
    while (heard.length < 3) await once(socket, 'message')
    t.same(heard, ['version 1', 'one', long])
    socket.close()
    await once(socket, 'close')
  })
})
