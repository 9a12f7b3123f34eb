import { randomUUID } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, settingsFrom } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { readInstanceId } from '../instance-id.js'
import { settings } from '../settings.js'
import { engineTest } from './lab.js'

engineTest('the health of the platform names the engine and how many containers it has', async t => {
  const k = await createTestKernel()
  t.teardown(async () => await k.close())
  const { status, body } = await k.as.anonymous().get('/healthz')
  t.equal(status, 200)
  t.match(JSON.stringify(body), /"docker":"ok \(\d+ containers\)"/)
})

test('an installation has one id, made once by whichever process is first, or given', async t => {
  const directory = t.testdir({})
  const at = async (variables: Readonly<Record<string, string>> = {}): Promise<string> =>
    await readInstanceId(settingsFrom(settings, variables).instance_id, {
      directory: async () => directory
    })
  const ids = await Promise.all(Array.from({ length: 8 }, async () => await at()))
  t.equal(new Set(ids).size, 1)
  t.equal(await at(), ids[0])
  t.same(await readdir(directory), ['instance-id'])
  t.equal(await at({ BUSBAR_INSTANCE_ID: 'production-1' }), 'production-1')
  await t.rejects(at({ BUSBAR_INSTANCE_ID: 'a,b=c' }), {
    message: /^BUSBAR_INSTANCE_ID is "a,b=c"; it takes 8 to 64 letters/
  })
  await writeFile(join(directory, 'instance-id'), '')
  await t.rejects(at(), { code: 'E_INSTANCE_ID', message: /instance-id does not hold/ })
})

test('without an engine the platform serves, and says what is wrong with the engine', async t => {
  const k = await createTestKernel({ environment: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } })
  t.teardown(async () => await k.close())
  t.equal((await k.as.anonymous().get('/api/version')).status, 200)
  t.match(
    JSON.stringify((await k.as.anonymous().get('/healthz')).body),
    /no Docker Engine at \/nowhere\/docker\.sock/
  )
  await t.rejects(k.service(containerRuntime).info(), { status: 503, code: 'E_ENGINE_UNREACHABLE' })
})

engineTest('after a restart the platform still knows its containers, another one does not', async t => {
  const projectId = randomUUID()
  const first = await createTestKernel()
  const runtime = first.service(containerRuntime)
  const network = await runtime.ensureNetwork({ id: projectId, slug: `k${projectId.slice(0, 8)}` })
  const id = await runtime.create({
    name: `kept-${projectId.slice(0, 8)}`,
    image: 'busybox:lab',
    owner: { projectId },
    network,
    env: {},
    command: ['true'],
    cpuLimit: 0,
    memoryLimit: 0,
    caps: 'minimal',
    readonlyRootfs: true
  })
  await first.stop()

  const [again, other] = await Promise.all([createTestKernel({ state: first.state }), createTestKernel()])
  t.teardown(async () => {
    const docker = new Docker()
    await docker
      .getContainer(id)
      .remove({ force: true })
      .catch(() => undefined)
    for (const { Id } of await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } }))
      await docker.getNetwork(Id).remove()
    await again.close()
    await other.close()
  })
  t.same(
    (await again.service(containerRuntime).list({})).map(container => container.id),
    [id]
  )
  t.same(await other.service(containerRuntime).list({}), [])
})
