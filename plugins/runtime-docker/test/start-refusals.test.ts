import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { ContainerLives } from '../container-lives.js'
import { EngineClient } from '../engine-client.js'

const containerId = 'a'.repeat(64)

test('a start that an engine refuses which was killed before is one to be tried again', async t => {
  const said = { status: 500, message: `task ${containerId}: already exists` }
  const server = createServer((_request, response) => {
    response
      .writeHead(said.status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ message: said.message }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const engine = new EngineClient({ docker_host: `tcp://127.0.0.1:${port}` })
  const seen = { Config: { Labels: {} }, HostConfig: { RestartPolicy: { Name: 'unless-stopped' } } }
  const lives = new ContainerLives({
    engine,
    access: { existing: async () => ({ ...seen, Id: containerId }) },
    orphans: { end: async () => {} },
    clock: { now: () => new Date(), sleep: async () => {} }
  } as never)
  for (const words of [
    said.message,
    'id already in use',
    `failed to start shim: mkdir /run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/${containerId}: file exists: unknown`
  ]) {
    said.message = words
    await t.rejects(lives.start(containerId), { status: 503, code: 'E_ENGINE_UNREACHABLE' })
  }
  for (const words of [
    'driver failed programming external connectivity: the address is already in use',
    'OCI runtime create failed: chdir to "/id already in use" failed',
    `OCI runtime create failed: chdir to "/${'b'.repeat(64)}: file exists" failed`
  ]) {
    said.message = words
    await t.rejects(lives.start(containerId), { code: 'E_ENGINE_REFUSED' }, words)
  }
})
