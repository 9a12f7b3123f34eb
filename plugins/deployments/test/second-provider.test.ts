import { randomUUID } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { imageService } from 'busbar/api/images'
import { definePlugin, kernel } from 'busbar/sdk'
import { settingsFrom, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { removeInstallationFromEngine } from '../../../lab/installation.js'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { DockerRuntime } from '../../runtime-docker/docker-runtime.js'
import { settings } from '../../runtime-docker/settings.js'
import { openLab, sample } from './deploy-lab.js'

/** Another plugin that runs containers and keeps images, on the engine that `environment` names. */
const secondRuntime = (environment: Readonly<Record<string, string>>, instanceId: string) =>
  definePlugin({
    id: 'second-runtime',
    needs: { clock: kernel.clock, secrets: kernel.secrets },
    start: ({ use: { clock, secrets: signatures }, log, onStop }) => {
      const runtime = new DockerRuntime({
        instanceId,
        signatures,
        clock,
        log,
        settings: settingsFrom(settings, environment)
      })
      onStop(() => runtime.limits.stop())
      return { runtime }
    },
    provides(provide, { runtime }) {
      provide(containerRuntime, runtime)
      provide(imageService, runtime)
    }
  })

test('applications run on whatever plugin implements containers and images', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'] })
  t.teardown(async () => await engine.close())
  const instanceId = randomUUID()
  t.teardown(async () => {
    await removeInstallationFromEngine(instanceId, engine.docker)
  })
  const lab = await openLab({
    docker: engine.docker,
    // Nothing is there: what works from here on works by the other plugin.
    environment: { DOCKER_HOST: 'unix:///nowhere/docker.sock' },
    inline: [
      {
        manifest: {
          id: 'second-runtime',
          implements: { containers: '^0.1.0', images: '^0.1.0' },
          grants: ['clock', 'secrets']
        },
        definition: secondRuntime(engine.environment, instanceId)
      }
    ]
  })
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const stateOf = async (id: string) => (await admin.get(`/api/plugins/${id}`)).body
  const consumers = ['applications', 'builds', 'deployments', 'direct']
  const dependents = ['builds', 'deployments', 'docker', 'file-mounts', 'registries', 'terminal', 'volumes']
  const dependentsOf = async (id: string): Promise<string[]> => (await stateOf(id)).dependents.toSorted()

  await t.test('it waits while another one does', async t => {
    t.match(await stateOf('second-runtime'), {
      state: 'blocked',
      reason: /^"runtime-docker" implements "containers" too, and one plugin may at a time/,
      implements: ['containers', 'images']
    })
    t.match(await admin.post('/api/plugins/second-runtime/enable'), {
      status: 409,
      body: { code: 'E_PLUGIN_RIVAL', provider: 'runtime-docker', contract: 'containers' }
    })
    t.equal(
      (await admin.post('/api/plugins/runtime-docker/enable')).status,
      200,
      'the one that runs may be chosen'
    )
    t.same(await dependentsOf('runtime-docker'), dependents)
  })

  await t.test('it takes over when that is turned off, and what needs them runs on it', async t => {
    t.equal((await admin.post('/api/plugins/runtime-docker/disable', { force: true })).status, 200)
    t.match(await stateOf('second-runtime'), { state: 'running' })
    t.same(await dependentsOf('second-runtime'), dependents)
    for (const id of consumers) t.match(await stateOf(id), { state: /running|degraded/ }, id)
  })

  const web = await lab.application('web', sample('one'))
  const served = async (): Promise<string> => await (await fetch((await web.read()).direct_url)).text()

  await t.test('an application is built, deployed and served, and deployed again', async t => {
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await served(), 'one')
    await web.push(sample('two'))
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await served(), 'two')
    await until(async () => (await web.containers()).length === 1, 'the old version is gone from the engine')
  })

  await t.test('it is stopped and started, and its status follows the events', async t => {
    t.equal((await admin.post(`${web.path}/stop`)).status, 200)
    await until(async () => (await web.read()).status === 'stopped', 'it is stopped')
    t.equal((await admin.post(`${web.path}/start`)).status, 200)
    await until(async () => (await web.read()).status === 'running', 'it runs')
    await until(async () => (await served().catch(() => '')) === 'two', 'it is served at its new address')
  })

  await t.test('without any of them what needs one says so', async t => {
    t.equal((await admin.post('/api/plugins/second-runtime/disable', { force: true })).status, 200)
    for (const id of ['builds', 'deployments'])
      t.match(await stateOf(id), {
        state: 'blocked',
        reason:
          /"containers", which nothing provides \("runtime-docker" is stopped, "second-runtime" is stopped\)/
      })
    t.match(await admin.post(`${web.path}/stop`), {
      status: 503,
      body: { code: 'E_PLUGIN_OFF', plugin: 'containers', error: /"containers" is off/ }
    })
    t.equal((await admin.post('/api/plugins/second-runtime/enable')).status, 200)
  })

  await t.test('an application that is deleted leaves nothing on its engine', async () => {
    await until(async () => (await admin.delete(web.path)).status === 200, 'it is deleted')
    const left = { filters: { label: [`application-id=${web.id}`] } }
    await until(async () => (await web.containers()).length === 0, 'its containers are gone', 60_000)
    await until(
      async () => (await engine.docker.listImages(left)).length === 0,
      'its images are gone',
      60_000
    )
  })
})
