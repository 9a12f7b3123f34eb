import { randomUUID } from 'node:crypto'
import { applicationGates, applicationLifecycle, applicationRegistry } from 'busbar/api/applications'
import { containerRuntime, type Owner } from 'busbar/api/containers'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startEngineProxy } from '../../../lab/engine-proxy.js'

const docker = new Docker()
/** Ends with 0 on SIGTERM and with 3 on SIGUSR1; the engine starts it again after the latter. */
const command = ['sh', '-c', 'trap "exit 0" TERM; trap "exit 3" USR1; while true; do sleep 0.1; done']

const watcher = (seen: string[], gate: { refusal: string | null }) => ({
  manifest: { id: 'watcher', requires: { applications: '^0.1.0' } },
  definition: definePlugin({
    id: 'watcher',
    contributes: contribute => {
      contribute(applicationGates, 'watcher', { refuses: async () => gate.refusal })
      contribute(applicationLifecycle, 'watcher', {
        started: async (_, containerId) => {
          seen.push(`started ${containerId}`)
        },
        stopped: async () => {
          seen.push('stopped')
        }
      })
    }
  })
})

interface Deployed {
  readonly projectId: string
  readonly id: string
  readonly slug: string
  readonly path: string
  readonly containerId: string
  readonly deploymentId: string
}

/** An application with a running container, as a deploy leaves it. */
async function deploy(t: Test, k: TestKernel): Promise<Deployed> {
  const ann = await k.as.session('ann')
  const slug = `t-${randomUUID().slice(0, 8)}`
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug })
  const { body: application } = await ann.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const deploymentId = randomUUID()
  const owner = { projectId: project.id, applicationId: application.id, deploymentId }
  const containerId = await run(t, k, application.slug, owner)
  await record(k, application.id, deploymentId)
  return {
    projectId: project.id,
    id: application.id,
    slug: application.slug,
    path: `/api/projects/${project.id}/applications/${application.id}`,
    containerId,
    deploymentId
  }
}

async function run(t: Test, k: TestKernel, name: string, owner: Owner): Promise<string> {
  const runtime = k.service(containerRuntime)
  const id = await runtime.create({
    name,
    image: 'busybox:lab',
    owner,
    network: 'bridge',
    env: {},
    command,
    cpuLimit: 0,
    memoryLimit: 0,
    caps: 'minimal',
    readonlyRootfs: true
  })
  t.teardown(async () => {
    await docker
      .getContainer(id)
      .remove({ force: true, v: true })
      .catch(() => undefined)
  })
  await runtime.start(id)
  return id
}

async function record(k: TestKernel, id: string, deploymentId: string): Promise<void> {
  const now = new Date()
  await k.transaction(async tx => {
    await k
      .service(applicationRegistry)
      .recordDeployed(id, { deploymentId, startedAt: now, finishedAt: now, rebuilt: true }, tx)
  })
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const piece of stream) text += String(piece)
  return text
}

test('what becomes of a container while the engine cannot be heard is the status, and is told, once it is back', async t => {
  if (!(await requireEngine(t))) return
  const proxy = await startEngineProxy(t)
  const k = await createTestKernel({ environment: { DOCKER_HOST: proxy.address } })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { id, path, containerId } = await deploy(t, k)
  const socket = await k.socket(ann)
  t.teardown(() => socket.close())
  socket.subscribe(`container-status:${id}`)
  await until(() => k.hasSubscribers(`container-status:${id}`), 'the subscription')
  for (const [change, status] of [
    [async () => await docker.getContainer(containerId).stop({ t: 5 }), 'stopped'],
    [async () => await docker.getContainer(containerId).start(), 'running']
  ] as const) {
    proxy.down()
    await change()
    const frames = socket.frames.length
    t.not((await ann.get(path)).body.status, status)
    proxy.up()
    await until(async () => (await ann.get(path)).body.status === status, `the status ${status}`)
    await until(() => socket.frames.length > frames, 'a word of it')
    t.same(socket.frames.at(-1)?.data, { application_id: id, status })
  }
})

test('containers of applications', async t => {
  if (!(await requireEngine(t))) return
  const seen: string[] = []
  const gate = { refusal: null as string | null }
  const log: string[] = []
  const k = await createTestKernel({ inline: [watcher(seen, gate)], onLog: line => log.push(line) })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const statusOf = async (path: string) => (await ann.get(path)).body.status
  const untilStatus = async (path: string, status: string) => {
    await until(async () => (await statusOf(path)) === status, `the status ${status}`)
  }

  await t.test('without a container there is nothing to start, stop or restart', async t => {
    const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'never' })
    const { body } = await ann.post(`/api/projects/${project.id}/applications`, {
      name: 'web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    for (const action of ['start', 'stop', 'restart']) {
      t.match(await ann.post(`/api/projects/${project.id}/applications/${body.id}/${action}`), {
        status: 409,
        body: { code: 'E_APPLICATION_NO_CONTAINER', error: body.slug }
      })
    }
  })

  await t.test(
    'stop, start and restart act on the container, tell who points at it, and show on the channel',
    async t => {
      const { path, containerId, id } = await deploy(t, k)
      const socket = await k.socket(ann)
      t.teardown(() => socket.close())
      socket.subscribe(`container-status:${id}`)
      await until(() => k.hasSubscribers(`container-status:${id}`), 'the subscription')
      t.equal(await statusOf(path), 'running')

      t.match(await ann.post(`${path}/stop`), { status: 200, body: { status: 'stopped', id } })
      t.match(await k.service(containerRuntime).inspect(containerId), { status: 'exited' })
      t.match(await socket.next(frame => frame.data.status === 'stopped'), {
        event: 'status',
        data: { application_id: id, status: 'stopped' }
      })
      t.match(await ann.post(`${path}/start`), { status: 200, body: { status: 'running' } })
      t.match(await k.service(containerRuntime).inspect(containerId), { status: 'running' })
      await socket.next(frame => frame.data.status === 'running')
      const { startedAt } = (await k.service(containerRuntime).inspect(containerId)) ?? {}
      t.match(await ann.post(`${path}/restart`), {
        status: 200,
        body: { status: 'running', last_activity_at: /^20/ }
      })
      t.not((await k.service(containerRuntime).inspect(containerId))?.startedAt, startedAt)
      t.same(seen, ['stopped', `started ${containerId}`, 'stopped', `started ${containerId}`])
    }
  )

  await t.test('a token needs the deploy scope, and a gate refuses with its reason', async t => {
    const { path } = await deploy(t, k)
    t.equal((await (await k.as.token('read', { user: 'ann' })).post(`${path}/restart`)).status, 403)
    gate.refusal = 'a deployment is already in progress for this application'
    t.match(await ann.post(`${path}/restart`), {
      status: 409,
      body: { code: 'E_APPLICATION_BUSY', error: gate.refusal }
    })
    gate.refusal = null
    t.equal((await (await k.as.token('deploy', { user: 'ann' })).post(`${path}/restart`)).status, 200)
  })

  await t.test('the status follows what happens to the container outside the platform', async t => {
    const { path, containerId, id } = await deploy(t, k)
    const socket = await k.socket(ann)
    t.teardown(() => socket.close())
    socket.subscribe(`container-status:${id}`)
    await until(() => k.hasSubscribers(`container-status:${id}`), 'the subscription')
    // Not docker kill, after which the engine would not start it again.
    const exec = await docker.getContainer(containerId).exec({ Cmd: ['kill', '-USR1', '1'] })
    const output = await exec.start({})
    output.destroy()
    await socket.next(frame => frame.data.status === 'error')
    await socket.next(frame => frame.data.status === 'running')
    t.equal(await statusOf(path), 'running', 'the engine started it again')
    await docker.getContainer(containerId).stop({ t: 5 })
    await untilStatus(path, 'stopped')
    await docker.getContainer(containerId).start()
    await untilStatus(path, 'running')
  })

  await t.test(
    'neither a container that is not proven yet nor one that drains changes the status',
    async t => {
      const { path, id, projectId, slug, containerId } = await deploy(t, k)
      const other = await deploy(t, k)
      /** Events come in order: when another application's has been followed, so have those before. */
      const eventsSeen = async () => {
        await docker.getContainer(other.containerId).stop({ t: 5 })
        await untilStatus(other.path, 'stopped')
        await docker.getContainer(other.containerId).start()
        await untilStatus(other.path, 'running')
      }
      const deploymentId = randomUUID()
      const next = await run(t, k, `${slug}-${deploymentId.slice(0, 8)}`, {
        projectId,
        applicationId: id,
        deploymentId
      })
      await docker.getContainer(next).stop({ t: 5 })
      await eventsSeen()
      t.equal(await statusOf(path), 'running')

      await docker.getContainer(next).start()
      await record(k, id, deploymentId)
      await docker.getContainer(containerId).stop({ t: 5 })
      await eventsSeen()
      t.equal(await statusOf(path), 'running', 'the old one no longer counts')
      await docker.getContainer(next).stop({ t: 5 })
      await untilStatus(path, 'stopped')
    }
  )

  await t.test('an application in which a child process ran out of memory goes on as running', async t => {
    const { containerId, id } = await deploy(t, k)
    const socket = await k.socket(ann)
    t.teardown(() => socket.close())
    socket.subscribe(`container-status:${id}`)
    await until(() => k.hasSubscribers(`container-status:${id}`), 'the subscription')
    const container = docker.getContainer(containerId)
    await container.update({ Memory: 32 * 2 ** 20, MemorySwap: 32 * 2 ** 20 })
    const since = Math.floor(Date.now() / 1000)
    const child = await container.exec({ Cmd: ['tail', '/dev/zero'] })
    const output = await child.start({})
    output.destroy()
    await until(async () => (await child.inspect()).ExitCode === 137, 'the kernel to end the child')
    t.match(await container.inspect(), { State: { Running: true } })
    await until(async () => {
      const filters = { container: [containerId], event: ['oom'] }
      return String(await textOf(await docker.getEvents({ since, until: Date.now() / 1000, filters }))) !== ''
    }, 'the engine to say so')
    // Events come in order: when this one has been followed, so has that before.
    await container.stop({ t: 5 })
    t.equal((await socket.next(() => true)).data.status, 'stopped')
  })

  await t.test('a container that ended before its deploy was recorded is noticed', async t => {
    const { path, id, containerId } = await deploy(t, k)
    await docker.getContainer(containerId).stop({ t: 5 })
    await untilStatus(path, 'stopped')
    t.equal(await statusOf(path), 'stopped')
    await record(k, id, (await k.service(applicationRegistry).deployable(id))?.containerDeploymentId ?? '')
    await untilStatus(path, 'stopped')
  })

  await t.test(
    'while the runtime is off the actions say so, and statuses are compared when it is back',
    async t => {
      const { path, containerId } = await deploy(t, k)
      await k.disable('runtime-docker', { force: true })
      t.match(await ann.post(`${path}/restart`), {
        status: 503,
        body: { code: 'E_PLUGIN_OFF', plugin: 'containers' }
      })
      t.equal((await ann.get(path)).status, 200)
      await k.enable('runtime-docker')
      t.equal((await ann.post(`${path}/restart`)).status, 200)
      await docker.getContainer(containerId).stop({ t: 5 })
      await untilStatus(path, 'stopped')
    }
  )

  await t.test('a deleted application leaves no container behind', async t => {
    const { path, containerId, id } = await deploy(t, k)
    t.match(await ann.delete(path), { status: 200, body: { status: 'deleted' } })
    await until(
      async () => (await k.query('select 1 from applications.application where id = $1', [id])).length === 0,
      'the row to be gone'
    )
    await t.rejects(docker.getContainer(containerId).inspect(), { statusCode: 404 } as never)
  })

  await t.test(
    'an application that ran is kept while the runtime is off, and leaves nothing behind when it is back',
    async t => {
      const { path, containerId, id } = await deploy(t, k)
      const isThere = async () =>
        (await k.query('select 1 from applications.application where id = $1', [id])).length === 1
      await k.disable('runtime-docker', { force: true })
      const lines = log.length
      t.equal((await ann.delete(path)).status, 200)
      t.equal((await ann.get(path)).status, 404)
      await until(
        () => log.slice(lines).some(line => line.includes(id) && line.includes('not removed yet')),
        'the first round'
      )
      t.ok(await isThere())
      await k.enable('runtime-docker')
      await until(async () => !(await isThere()), 'the row to be gone')
      await t.rejects(docker.getContainer(containerId).inspect(), { statusCode: 404 } as never)
    }
  )

  await t.test(
    'a deleted project takes its applications, their containers and their variables with it',
    async t => {
      const { projectId, containerId } = await deploy(t, k)
      await ann.put(`/api/projects/${projectId}/env`, { vars: [{ key: 'A', value: '1' }] })
      await ann.delete(`/api/projects/${projectId}`)
      await until(
        async () => (await k.query('select 1 from projects.project where id = $1', [projectId])).length === 0,
        'the row to be gone'
      )
      await t.rejects(docker.getContainer(containerId).inspect(), { statusCode: 404 } as never)
      for (const table of ['applications.application', 'environment.variable']) {
        t.same(await k.query(`select 1 from ${table} where project_id = $1`, [projectId]), [])
      }
    }
  )
})

test('what happened to containers while the platform was down is seen when it starts', async t => {
  if (!(await requireEngine(t))) return
  const first = await createTestKernel()
  const { path, containerId } = await deploy(t, first)
  await first.stop()
  await docker.getContainer(containerId).stop({ t: 5 })
  const second = await createTestKernel({ state: first.state })
  t.teardown(() => second.close())
  const ann = await second.as.session('ann')
  t.equal(
    await until(
      async () => ((await ann.get(path)).body.status === 'stopped' ? 'stopped' : undefined),
      'the status'
    ),
    'stopped'
  )
})
