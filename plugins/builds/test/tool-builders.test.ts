import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from '../../deployments/test/deploy-lab.js'
import { folder } from './kit.js'
import { get, isAlive, madeName, openToolLab, secret, volumesOf, withVariables } from './tool-lab.js'

test('a build that hangs ends with all that it has started: when it is cancelled, and when its time is up', async t => {
  if (!(await requireEngine(t))) return
  const { lab, tools } = await openToolLab(t)
  const admin = await lab.k.as.session()
  const application = await lab.application('hanging', sample('one'), { build_type: 'buildpacks' })
  t.equal((await admin.put(application.path, { builder_image: 'busybox:lab' })).status, 200)
  const containers = async (): Promise<number> =>
    (
      await engine.listContainers({
        all: true,
        filters: { volume: [`busbar-cnb-cache-${application.id.slice(0, 8)}`] }
      })
    ).length
  await tools.behave('hang')
  const { id } = await application.deploy()
  await until(
    async () => (await containers()) === 1 && (await tools.called('pack')).pids.length === 2,
    'the build to be under way',
    60_000
  )
  const { pids } = await tools.called('pack')
  t.equal(pids.filter(isAlive).length, 2)
  const [container] = await engine.listContainers({
    filters: { volume: [`busbar-cnb-cache-${application.id.slice(0, 8)}`] }
  })
  await until(
    async () => (await engine.getContainer(container?.Id ?? '').inspect()).HostConfig.PidsLimit === 4096,
    'what pack has started is capped'
  )
  const {
    Memory: memory,
    MemorySwap: withSwap,
    NanoCpus: cpus
  } = (await engine.getContainer(container?.Id ?? '').inspect()).HostConfig
  t.ok(
    Number(memory) >= 512 * 2 ** 20 && withSwap === memory && Number(cpus) > 0,
    `${memory} bytes, ${withSwap} with swap, ${cpus} nanocpus`
  )

  t.match(await admin.delete(`${application.path}/cache`), {
    status: 409,
    body: { code: 'E_BUILD_CACHE_BUSY', error: /a deployment is in progress/ }
  })
  t.equal((await volumesOf(application.id)).length, 2, 'nothing was cleared')

  t.equal((await admin.post(`${application.path}/deployments/${id as string}/cancel`)).status, 202)
  t.match(await application.ended(id), { status: 'failed', error_message: 'cancelled' })
  await until(() => !pids.some(isAlive), 'the processes to end')
  t.equal(await containers(), 0)
})

test('the time limit of a build holds for foreign programs', async t => {
  if (!(await requireEngine(t))) return
  const { lab, tools } = await openToolLab(t, { BUILD_TIMEOUT_MINUTES: '0.05' })
  const application = await lab.application('slow', sample('one'), { build_type: 'railpack' })
  await tools.behave('hang')
  t.match(await application.deployed(), {
    status: 'failed',
    error_message: /the build was stopped after 0\.05 minutes/
  })
  const { pids } = await tools.called('railpack')
  await until(() => !pids.some(isAlive), 'the processes to end')
})

test('railpack builds with the BuildKit of the platform; its failures say what helps', async t => {
  if (!(await requireEngine(t))) return
  const setup = await openToolLab(t, { BUILDKIT_HOST: 'tcp://127.0.0.9:4321' })
  const { lab, tools } = setup
  const application = await lab.application('railed', sample('one'), { build_type: 'railpack' })
  await withVariables(setup, application)
  const deployment = await application.deployed()
  t.match(deployment, { status: 'success' }, deployment.error_message ?? '')
  const { argv, env, cwd } = await tools.called('railpack')
  t.match(argv.slice(0, 7), [
    'build',
    '--name',
    madeName(application.id),
    '--progress',
    'plain',
    '--cache-key',
    application.id
  ])
  t.equal(argv.at(-1), cwd)
  t.match(env, { BUILDKIT_HOST: 'tcp://127.0.0.9:4321', API_KEY: secret, GREETING: 'a, b = c' })
  t.notMatch(argv.join(' '), secret)
  t.equal(await (await fetch((await application.read()).direct_url)).text(), 'one')

  await tools.behave('no-buildkit')
  t.match(await application.deployed(), {
    status: 'failed',
    error_message:
      /railpack found no BuildKit at tcp:\/\/127\.0\.0\.9:4321: start one \(docker run .*or set BUILDKIT_HOST/
  })
  await tools.behave('fail')
  t.match(await application.deployed(), {
    status: 'failed',
    error_message: /railpack ended with exit code 7: ERROR: failed to detect: no buildpack fits/
  })
  await tools.behave('none')
  t.match(await application.deployed(), {
    status: 'failed',
    error_message: /railpack ended without an error, but the Docker Engine has no image/
  })
  t.equal(await (await fetch((await application.read()).direct_url)).text(), 'one', 'what ran goes on')
})

test('nixpacks, which writes variables into the image, is given none that is secret', async t => {
  if (!(await requireEngine(t))) return
  const setup = await openToolLab(t)
  const { lab, tools } = setup
  const application = await lab.application('nixed', sample('one'), { build_type: 'nixpacks' })
  await withVariables(setup, application)
  const deployment = await application.deployed()
  t.match(deployment, { status: 'success' }, deployment.error_message ?? '')
  const { argv, env, cwd } = await tools.called('nixpacks')
  t.match(argv.slice(0, 6), ['build', cwd, '--name', madeName(application.id), '--cache-key', application.id])
  t.notOk('API_KEY' in env)
  t.match(env, { GREETING: 'a, b = c', DOCKER_BUILDKIT: '1' })
  t.match(deployment.build_logs, /nixpacks is not given API_KEY/)
  t.match((await engine.getImage(deployment.image_tag).inspect()).Config.Labels, {
    'application-id': application.id
  })

  t.equal((await (await lab.k.as.session()).delete(`${application.path}/cache`)).status, 200)
  t.match(await application.deployed(), { status: 'success' })
  t.ok((await tools.called('nixpacks')).argv.includes('--no-cache'))
})

test('a program that is not there fails the deploy with how to get it, and the list of builders says so before', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab({ environment: { PATH: await folder(t) } })
  t.teardown(async () => await lab.close())
  const builders = await get(lab, '/api/builders')
  t.same(
    builders.map(({ build_type: type, available }: any) => [type, available]),
    [
      ['buildpacks', false],
      ['dockerfile', true],
      ['nixpacks', false],
      ['railpack', false],
      ['static', true]
    ]
  )
  const how = {
    buildpacks:
      /pack was not found on the PATH of the platform: it builds applications with Cloud Native Buildpacks\. Install it from https:.*buildpacks\/pack\/releases/,
    railpack:
      /railpack was not found on the PATH of the platform: .*curl -sSL https:\/\/railpack\.com\/install\.sh.*BUILDKIT_HOST.*or choose another build type/,
    nixpacks:
      /nixpacks was not found on the PATH of the platform: .*curl -sSL https:\/\/nixpacks\.com\/install\.sh/
  } as const
  for (const [type, message] of Object.entries(how)) {
    t.match(
      builders.find(({ build_type: key }: any) => key === type),
      { reason: message, plugin: 'builds' }
    )
    const application = await lab.application(`missing-${type}`, sample('one'), { build_type: type })
    t.match(await application.deployed(), { status: 'failed', error_message: message }, type)
    t.same(
      (await lab.k.as.session().then(async admin => await admin.delete(`${application.path}/cache`))).status,
      200
    )
  }
})
