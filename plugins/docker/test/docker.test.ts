import { randomBytes } from 'node:crypto'
import {
  type ContainerRuntime,
  containerRuntime,
  engineInventory,
  type ListedContainer
} from 'busbar/api/containers'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { fields } from '../../../test/contract/extensions.js'
import { faultsOf, described as operations } from '../../../test/contract/shape.js'

const paths = ['overview', 'containers', 'images', 'networks', 'volumes'].map(view => `/api/docker/${view}`)
const docker = new Docker()
const unique = (word: string): string => `${word}-${randomBytes(6).toString('hex')}`
const extended = Object.values(fields).flatMap(names => Object.keys(names))

async function platform(t: Test, options: Parameters<typeof createTestKernel>[0] = {}): Promise<TestKernel> {
  const k = await createTestKernel(options)
  t.teardown(async () => await k.close())
  return k
}

/** A project with an application, and a container of it on the engine. */
async function served(t: Test, k: TestKernel) {
  const admin = await k.as.session()
  const slug = unique('p')
  const { body: project } = await admin.post('/api/projects', { name: 'Shop', slug })
  const { body: application } = await admin.post(`/api/projects/${project.id}/applications`, {
    name: 'Web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const runtime = k.service(containerRuntime)
  const [projectId, applicationId, deploymentId] = [
    project.id as string,
    application.id as string,
    project.id as string
  ]
  const network = await runtime.ensureNetwork({ id: projectId, slug })
  const id = await runtime.create({
    name: unique('web'),
    image: 'busybox:lab',
    owner: { projectId, applicationId, deploymentId },
    network,
    env: { PASSWORD: 'correct-horse-env' },
    command: ['sh', '-c', 'trap "exit 0" TERM; while true; do sleep 0.1; done # correct-horse-command'],
    cpuLimit: 0,
    memoryLimit: 0,
    caps: 'minimal',
    readonlyRootfs: true
  })
  t.teardown(async () => await runtime.remove(id))
  await runtime.start(id)
  return { projectId, applicationId, deploymentId, network, id }
}

test('an admin sees what is on the engine, and whose it is', async t => {
  if (!(await requireEngine(t))) return
  const k = await platform(t)
  const { projectId, applicationId, deploymentId, network, id } = await served(t, k)
  const foreign = await docker.createContainer({
    Image: 'busybox:lab',
    name: unique('foreign'),
    Env: ['PASSWORD=correct-horse-env'],
    Cmd: ['sleep', 'correct-horse-command'],
    Labels: { secret: 'correct-horse-label' }
  })
  t.teardown(async () => await foreign.remove({ force: true }))
  const admin = await k.as.token('read', { user: 'admin' })
  const read = async (view: string, query = '') => await admin.get(`/api/docker/${view}${query}`)

  await t.test('containers, stopped and foreign ones too', async t => {
    const { status, body, headers } = await read('containers')
    t.equal(status, 200)
    t.equal(headers['x-total-count'], String(body.length))
    const find = (wanted: string) => body.find((one: { id: string }) => one.id === wanted)
    const owner = {
      type: 'application',
      id: applicationId,
      name: 'Web',
      project_id: projectId,
      deployment_id: deploymentId
    }
    t.match(find(id), { status: 'running', managed: true, image: 'busybox:lab', owner })
    t.match(find(foreign.id), { status: 'created', managed: false, owner: null })
    t.notMatch(JSON.stringify(body), 'correct-horse')
  })

  await t.test('images with the number of their containers', async t => {
    const { body } = await read('images')
    const base = body.find((one: { repo_tags: string[] }) => one.repo_tags.includes('busybox:lab'))
    t.match(base, { dangling: false, managed: false, owner: null })
    t.ok(base.containers >= 2)
    t.ok(base.size > 1000)
  })

  await t.test('networks with their containers', async t => {
    const { body } = await read('networks')
    t.match(
      body.find((one: { name: string }) => one.name === network),
      {
        managed: true,
        driver: 'bridge',
        owner: { type: 'project', id: projectId, name: 'Shop' },
        containers: [{ id, ipv4_address: /^10\.\d+\.\d+\.\d+\/26$/ }],
        container_count: 1
      }
    )
  })

  await t.test('volumes with their size, their kind and who has mounted them', async t => {
    const [mine, other] = [`busbar-builder-${projectId}`, unique('volume')]
    const runtime = k.service(containerRuntime)
    await runtime.ensureVolume(mine, { projectId })
    t.teardown(async () => await runtime.removeVolume(mine))
    await docker.createVolume({ Name: other, DriverOpts: {}, Labels: { secret: 'correct-horse-label' } })
    t.teardown(async () => await docker.getVolume(other).remove())
    const { body } = await read('volumes')
    const find = (wanted: string) => body.find(({ name }: { name: string }) => name === wanted)
    t.match(find(mine), {
      managed: true,
      kind: 'cache',
      owner: { type: 'project', id: projectId },
      ref_count: 0
    })
    t.match(find(other), { managed: false, kind: '', owner: null, driver: 'local' })
    t.notMatch(JSON.stringify(body), 'correct-horse')
  })

  await t.test('the engine at a glance', async t => {
    const { status, body } = await read('overview')
    t.equal(status, 200)
    t.match(body.info, { os_type: 'linux', server_version: /^\d+\./ })
    t.ok(body.counts.containers_running >= 1)
    t.ok(body.counts.containers_total > body.counts.containers_running)
    t.ok(body.disk_usage.images.count > 0)
    t.ok(Math.abs(Date.parse(body.disk_usage.measured_at) - Date.now()) < 300_000)
  })

  await t.test('answers are as the contract says', async t => {
    for (const path of paths) {
      const operation = operations.find(one => one.method === 'GET' && one.path === path)
      t.same(
        faultsOf((await admin.get(path)).body, operation?.responses['200'] ?? 'missing', extended),
        [],
        path
      )
    }
  })

  await t.test('lists are paged', async t => {
    for (const view of ['containers', 'images', 'networks', 'volumes']) {
      const all = (await read(view)).body
      const page = await read(view, '?limit=1&offset=1')
      t.same(page.body, all.slice(1, 2), view)
      t.ok(Number(page.headers['x-total-count']) >= page.body.length)
    }
  })

  await t.test('a pinned token sees the rows of its projects', async t => {
    const pinned = await k.as.token('read', { user: 'admin', pins: [projectId] })
    const containers = await pinned.get('/api/docker/containers')
    t.same(
      containers.body.map((one: { id: string }) => one.id),
      [id]
    )
    t.equal(containers.headers['x-total-count'], '1')
    const networks = (await pinned.get('/api/docker/networks')).body
    t.match(networks, [{ name: network, container_count: 1 }])
    t.same((await pinned.get('/api/docker/volumes')).body, [])
    t.same((await pinned.get('/api/docker/images')).body, [])
    t.equal((await pinned.get('/api/docker/overview')).status, 200)
  })
})

test('only admins see it, with a session or a token that may read', async t => {
  const k = await platform(t, { environment: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } })
  for (const path of paths) {
    t.equal((await k.as.anonymous().get(path)).status, 401)
    t.match(await (await k.as.session('member')).get(path), { status: 403, body: { code: 'E_FORBIDDEN' } })
    t.match(await (await k.as.token('metrics')).get(path), { status: 403, body: { code: 'E_SCOPE' } })
  }
})

test('while the engine is away the views say so, with the reason and what helps', async t => {
  const k = await platform(t, { environment: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } })
  const admin = await k.as.session()
  for (const path of paths)
    t.match(await admin.get(path), {
      status: 503,
      body: {
        code: 'E_ENGINE_UNREACHABLE',
        error: /\/nowhere\/docker\.sock/,
        remedy: /start dockerd/
      }
    })
})

const many = 3000
const listed = (at: number): ListedContainer => ({
  id: String(at).padStart(64, '0'),
  name: `c${at}`,
  image: 'busybox',
  imageId: `sha256:${at % 1000}`,
  status: 'running',
  ports: [],
  networks: [],
  volumes: [],
  owner: { projectId: '00000000-0000-4000-8000-000000000000' },
  isManaged: true,
  createdAt: new Date(at * 1000)
})

test('a page of thousands is asked of the engine once, and its owners of the database once', async t => {
  let lists = 0
  const engine = definePlugin({
    id: 'engine',
    provides(provide) {
      provide(containerRuntime, {
        info: async () => await Promise.reject(new Error('not now'))
      } as unknown as ContainerRuntime)
      provide(engineInventory, {
        containers: async () => {
          lists++
          return Array.from({ length: many }, (_, at) => listed(at))
        },
        images: async () => [],
        networks: async () => [],
        volumes: async () => [],
        diskUse: async () => await Promise.reject(new Error('not now'))
      })
    }
  })
  const k = await platform(t, {
    inline: [{ manifest: { id: 'engine', implements: { containers: '^0.1.0' } }, definition: engine }]
  })
  await k.disable('runtime-docker', { force: true })
  const admin = await k.as.session()
  const page = await admin.get('/api/docker/containers?limit=20&offset=100')
  t.equal(page.status, 200)
  t.equal(page.headers['x-total-count'], String(many))
  t.match(page.body, [{ name: 'c100', owner: { type: 'project', name: '' } }])
  t.equal(page.body.length, 20)
  t.equal(lists, 1)
  t.equal((await admin.get('/api/docker/containers')).body.length, many)
  t.match((await admin.get('/api/docker/volumes')).body, [])
})
