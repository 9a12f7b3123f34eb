import { existsSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import {
  type DeployLab,
  engine,
  type LabApplication,
  openLab,
  sample
} from '../../deployments/test/deploy-lab.js'
import { checkBuildpacks, imageOfBuildpack } from '../builders/buildpack-reference.js'
import { passVariables } from '../builders/tool-variables.js'
import { folder } from './kit.js'
import { type StandIns, standIns } from './stand-ins.js'

interface ToolLab {
  readonly lab: DeployLab
  readonly tools: StandIns
}

async function openToolLab(t: Test, environment: Readonly<Record<string, string>> = {}): Promise<ToolLab> {
  const tools = await standIns(t)
  const lab = await openLab({ environment: { PATH: tools.path, ...environment } })
  t.teardown(async () => await lab.close())
  return { lab, tools }
}

const secret = 'a-very-secret-value'
const variables = {
  vars: [
    { key: 'GREETING', value: 'a, b = c', is_secret: false },
    { key: 'API_KEY', value: secret, is_secret: true },
    { key: 'LD_PRELOAD', value: `/tmp/${secret}.so`, is_secret: true },
    { key: 'NODE_OPTIONS', value: '--max-old-space-size=512', is_secret: false },
    { key: 'DOCKER_HOST', value: 'tcp://203.0.113.1:1', is_secret: false },
    { key: 'MULTILINE', value: 'one\ntwo', is_secret: true }
  ]
}

async function withVariables({ lab }: ToolLab, application: LabApplication): Promise<void> {
  const answer = await (await lab.k.as.session()).put(`${application.path}/env`, variables)
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}

const get = async (lab: DeployLab, path: string): Promise<any> =>
  (await (await lab.k.as.session()).get(path)).body
const volumesOf = async (id: string): Promise<string[]> =>
  ((await engine.listVolumes({ filters: { label: [`application-id=${id}`] } })).Volumes ?? [])
    .map(({ Name }) => Name)
    .sort()
/** What a program is to call its image: nobody can guess it. */
const madeName = (id: string): RegExp => new RegExp(`^busbar-build-${id}-[0-9a-f]{20}:latest$`)
const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`)
const imageExists = async (name: string): Promise<boolean> =>
  await engine
    .getImage(name)
    .inspect()
    .then(
      () => true,
      () => false
    )
const valuesOf = (argv: readonly string[], option: string): string[] =>
  argv.flatMap((argument, at) => (argv[at - 1] === option ? [argument] : []))

void test('an application is built with buildpacks: its override, builder image and buildpacks reach pack, and its secrets no argument', async t => {
  if (!(await requireEngine(t))) return
  const setup = await openToolLab(t)
  const { lab, tools } = setup
  const admin = await lab.k.as.session()
  const application = await lab.application('packed', {
    ...sample('one'),
    'buildpacks/own/buildpack.toml': 'x'
  })
  const { status, body } = await admin.put(application.path, {
    build_type_override: 'buildpacks',
    builder_image: 'busybox:lab',
    custom_buildpacks: '["docker://node:20", "buildpacks/own", "heroku/nodejs@4.1.0"]'
  })
  t.equal(status, 200, JSON.stringify(body))
  await withVariables(setup, application)
  const deployment = await application.deployed()
  t.match(deployment, { status: 'success' }, deployment.error_message ?? '')

  const { argv, env, cwd } = await tools.called('pack')
  const short = application.id.slice(0, 8)
  t.match(argv.slice(0, 2), ['build', madeName(application.id)])
  t.same(valuesOf(argv, '--builder'), ['busybox:lab'])
  t.same(valuesOf(argv, '--buildpack'), ['docker://node:20', 'buildpacks/own', 'heroku/nodejs@4.1.0'])
  t.same(valuesOf(argv, '--cache'), [
    `type=build;format=volume;name=busbar-cnb-cache-${short};type=launch;format=volume;name=busbar-cnb-launch-${short}`
  ])
  t.same(valuesOf(argv, '--path'), [cwd])
  t.same(valuesOf(argv, '--docker-host'), ['inherit'])
  t.match(
    valuesOf(argv, '--network'),
    [/^busbar\.builds\./],
    'where its containers reach neither the machine nor each other'
  )
  t.notOk(argv.includes('--trust-builder'))
  t.notOk(argv.includes('--clear-cache'))
  t.same(valuesOf(argv, '--env').sort(), [
    'API_KEY',
    'DOCKER_HOST=tcp://203.0.113.1:1',
    'GREETING',
    'MULTILINE',
    'NODE_OPTIONS=--max-old-space-size=512'
  ])
  t.notMatch(argv.join(' '), secret)
  t.match(env, { API_KEY: secret, GREETING: 'a, b = c', MULTILINE: 'one\ntwo' })
  t.match(env.DOCKER_HOST, /^(unix|tcp):\/\/(?!203)/, 'the engine of the platform')
  t.notOk('LD_PRELOAD' in env)
  t.match(env.HOME, /data\/builds\/tools\/pack$/)
  t.match(env.TMPDIR, new RegExp(`builds/work/${deployment.id}`))
  t.notOk(existsSync(cwd), 'the source is gone')

  const log: string = deployment.build_logs
  t.match(log, /===> BUILDING/)
  t.notMatch(log, /\\u001b/)
  t.match(log, /"stream":"stderr","msg":"a word on stderr"/)
  t.match(log, /pack is not given LD_PRELOAD/)
  t.notMatch(log, secret)

  const image = await engine.getImage(deployment.image_tag).inspect()
  t.match(image.Config.Labels, {
    'managed-by': 'busbar',
    'application-id': application.id,
    'project-id': lab.projectId
  })
  t.ok(image.Config.Env.includes('MADE_BY=pack'))
  t.notOk(await imageExists(argv[1] ?? ''), 'the image without labels is gone')
  const { direct_url: url } = await application.read()
  t.equal(await (await fetch(url)).text(), 'one')

  await t.test(
    'what its builds keep is two volumes with its labels, measured, and removed when it is cleared',
    async t => {
      t.same(await volumesOf(application.id), [`busbar-cnb-cache-${short}`, `busbar-cnb-launch-${short}`])
      const cache = await get(lab, `${application.path}/cache`)
      const mebibyte = 2 ** 20
      t.ok(
        cache.build_cache_bytes >= 4 * mebibyte && cache.build_cache_bytes < 4.5 * mebibyte,
        JSON.stringify(cache)
      )
      t.ok(cache.launch_cache_bytes >= 2 * mebibyte && cache.launch_cache_bytes < 2.5 * mebibyte)
      t.equal(cache.total_bytes, cache.build_cache_bytes + cache.launch_cache_bytes)
      t.match(await admin.delete(`${application.path}/cache`), { status: 200, body: { status: 'cleared' } })
      t.same(await volumesOf(application.id), [])
      t.same(await get(lab, `${application.path}/cache`), {
        build_cache_bytes: 0,
        launch_cache_bytes: 0,
        total_bytes: 0
      })
      t.equal(await (await fetch(url)).text(), 'one', 'what runs is not touched')

      t.match(await application.deployed(), { status: 'success' })
      t.ok((await tools.called('pack')).argv.includes('--clear-cache'), 'the next build starts anew')
      t.match(await application.deployed(), { status: 'success' })
      t.notOk((await tools.called('pack')).argv.includes('--clear-cache'), 'and only that one')
    }
  )

  await t.test('an image that was built for another application is no builder', async t => {
    const other = await lab.application('other', sample('two'), { build_type: 'nixpacks' })
    const { image_tag: foreign } = await other.deployed()
    t.equal((await admin.put(application.path, { builder_image: foreign })).status, 200)
    t.match(await application.deployed(), {
      status: 'failed',
      error_message: /was built for another application/
    })
    t.equal(
      (
        await admin.put(application.path, {
          builder_image: 'busybox:lab',
          custom_buildpacks: JSON.stringify([`docker://${foreign as string}`])
        })
      ).status,
      200
    )
    t.match(await application.deployed(), {
      status: 'failed',
      error_message: /was built for another application/
    })
    t.equal((await admin.put(application.path, { custom_buildpacks: '["/etc"]' })).status, 200)
    t.match(await application.deployed(), {
      status: 'failed',
      error_message: /the buildpack \/etc is not used: it leads out of the repository/
    })
  })

  await t.test('its volumes go with it, and what a killed platform has left', async t => {
    await engine.getImage('busybox:lab').tag({ repo: `busbar-build-${application.id}`, tag: 'latest' })
    t.equal((await admin.delete(application.path)).status, 200)
    await until(async () => (await volumesOf(application.id)).length === 0, 'the volumes to go', 60_000)
    await until(
      async () =>
        (await engine.listImages({ all: true, filters: { label: [`application-id=${application.id}`] } }))
          .length === 0,
      'the images to go',
      60_000
    )
    await until(
      async () => !(await imageExists(`busbar-build-${application.id}:latest`)),
      'the image without labels to go'
    )
  })
})

void test('a build that hangs ends with all that it has started: when it is cancelled, and when its time is up', async t => {
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

void test('the time limit of a build holds for foreign programs', async t => {
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

void test('railpack builds with the BuildKit of the platform; its failures say what helps', async t => {
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

void test('nixpacks, which writes variables into the image, is given none that is secret', async t => {
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

void test('a program that is not there fails the deploy with how to get it, and the list of builders says so before', async t => {
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

void test('variables go by the environment; what would steer the program itself does not', t => {
  const variable = (key: string, value = 'v', isSecret = false) => ({ key, value, isSecret })
  const names = [
    'PATH',
    'LD_LIBRARY_PATH',
    'http_proxy',
    'HTTPS_PROXY',
    'BUILDKIT_HOST',
    'PYTHONPATH',
    'GODEBUG',
    'MISE_TRUSTED_CONFIG_PATHS',
    'npm_config_registry',
    'GIT_SSH_COMMAND',
    'AWS_CONFIG_FILE',
    'NODE_OPTIONS',
    'GOFLAGS',
    'XDG_CONFIG_HOME',
    'BASH_ENV'
  ]
  t.same(
    passVariables(
      names.map(name => variable(name)),
      { withSecrets: true }
    ),
    { env: {}, args: names.flatMap(name => ['--env', `${name}=v`]), withheld: [] }
  )
  t.same(
    passVariables(
      names.map(name => variable(name, 'v', true)),
      { withSecrets: true }
    ),
    { env: {}, args: [], withheld: names }
  )
  const harmless = [
    'LDAP_PASSWORD',
    'GITLAB_TOKEN',
    'GIT_TOKEN',
    'NPM_TOKEN',
    'NODE_ENV',
    'NODE_AUTH_TOKEN',
    'AWS_SECRET_ACCESS_KEY',
    'GOOGLE_CLIENT_SECRET',
    'PACKAGE',
    'GITHUB_TOKEN',
    'PATHS'
  ]
  t.same(
    passVariables(
      harmless.map(name => variable(name, 'v', true)),
      { withSecrets: true }
    ).withheld,
    []
  )
  t.same(
    passVariables([variable('PATH', 'a,b')], { withSecrets: true }).withheld,
    ['PATH'],
    'railpack takes arguments apart at commas'
  )
  t.same(
    passVariables(
      [
        variable('A', 'x,y'),
        variable('B', '', true),
        variable('NIXPACKS_PKGS', 'z'),
        variable('DATABASE_URL')
      ],
      { withSecrets: true }
    ),
    {
      env: { A: 'x,y', B: '', NIXPACKS_PKGS: 'z', DATABASE_URL: 'v' },
      args: ['--env', 'A', '--env', 'B', '--env', 'NIXPACKS_PKGS', '--env', 'DATABASE_URL'],
      withheld: []
    }
  )
  t.end()
})

void test('a buildpack at an address is fetched by the platform, and never from a private host', async t => {
  if (!(await requireEngine(t))) return
  const server = createServer((_request, response) => {
    response.end('a buildpack')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/own.tgz`
  const deployed = async (lab: DeployLab, name: string, ...buildpacks: string[]): Promise<any> => {
    const application = await lab.application(name, sample('one'), { build_type: 'buildpacks' })
    await (await lab.k.as.session()).put(application.path, {
      builder_image: 'busybox:lab',
      custom_buildpacks: JSON.stringify(buildpacks)
    })
    return await application.deployed()
  }
  const { lab, tools } = await openToolLab(t)
  t.match(await deployed(lab, 'fetched', address, 'heroku/nodejs'), {
    status: 'success',
    error_message: null
  })
  const [file = '', ...rest] = valuesOf((await tools.called('pack')).argv, '--buildpack')
  t.match(file, /\/scratch\/buildpacks\/0\.cnb$/)
  t.same(rest, ['heroku/nodejs'])

  const { lab: strict } = await openToolLab(t, { GIT_PRIVATE_HOSTS: '127.0.0.1' })
  const redirecting = createServer((_request, response) => {
    response.writeHead(302, { location: 'http://10.0.0.1/own.tgz' }).end()
  })
  await new Promise<void>(resolve => redirecting.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    redirecting.close()
  })
  t.match(
    await deployed(strict, 'led', `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/own.tgz`),
    {
      status: 'failed',
      error_message: /the host of a remote file 10\.0\.0\.1 has the private or local address/
    }
  )
})

void test('buildpacks come from images, registries and the repository, never from files of the machine', async t => {
  const directory = await folder(t)
  await symlink('/etc', join(directory, 'link'))
  const check = async (reference: string) => await checkBuildpacks([reference], directory)
  for (const good of [
    'heroku/nodejs',
    'heroku/nodejs@1.2.3',
    'docker://example.com:5000/a/b:1',
    'urn:cnb:registry:x/y',
    'from=builder:x',
    'own/buildpack',
    'https://Example.com/a.tgz',
    'http://[::1]:80/a.tgz'
  ]) {
    await t.resolves(check(good), good)
  }
  for (const bad of [
    '/etc',
    '../x',
    'a/../../x',
    'file:///etc',
    'file:/etc',
    'ftp://x/y',
    'link',
    'link/ssl',
    '-x',
    'a,b',
    'a b'
  ]) {
    await t.rejects(check(bad), { status: 409, code: 'E_BUILD_BUILDPACK' }, bad)
  }
  t.same(
    ['docker://a/b:1', 'heroku/nodejs', 'heroku/nodejs@1.2.3', 'https://x/y', 'urn:cnb:x'].map(
      imageOfBuildpack
    ),
    ['a/b:1', 'heroku/nodejs', null, null, null]
  )
})
