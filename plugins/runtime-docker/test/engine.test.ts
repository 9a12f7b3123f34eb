import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ContainerEvent } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'
import { settingsFrom, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { DockerRuntime } from '../docker-runtime.js'
import { findEngine, parseDockerHost } from '../engine-address.js'
import { engineProblem } from '../engine-failure.js'
import { settings } from '../settings.js'
import { clock, engineTest, log, signatures, startLab } from './lab.js'

const nothing = {}

test('the engine is where DOCKER_HOST says, else at the first usual socket that exists', t => {
  t.match(findEngine({ docker_host: 'unix:///run/x.sock' }), {
    kind: 'socket',
    path: '/run/x.sock'
  })
  t.match(findEngine({ docker_host: 'tcp://10.0.0.5:2375' }), {
    kind: 'tcp',
    host: '10.0.0.5',
    port: 2375,
    certificates: null
  })
  t.match(parseDockerHost('tcp://engine.lan', { docker_tls_verify: '1', docker_cert_path: '/certs' }), {
    port: 2376,
    certificates: '/certs'
  })
  t.match(parseDockerHost('tcp://[::1]:2375', nothing), { host: '::1' })
  t.match(
    findEngine({ xdg_runtime_dir: '/run/user/7' }, path => path === '/run/user/7/docker.sock'),
    { path: '/run/user/7/docker.sock' }
  )
  t.match(
    findEngine(nothing, () => false),
    { path: '/var/run/docker.sock', text: /\/var\/run\/docker\.sock or / }
  )
  for (const wrong of [
    'ssh://me@host',
    'unix://',
    'unix://relative',
    'tcp://',
    'nonsense',
    '/var/run/docker.sock'
  ]) {
    t.throws(
      () => parseDockerHost(wrong, nothing),
      { status: 503, code: 'E_ENGINE_UNREACHABLE', message: /DOCKER_HOST is / },
      wrong
    )
    t.throws(() => settingsFrom(settings, { DOCKER_HOST: wrong }), {
      message: `DOCKER_HOST is "${wrong}"; it takes unix:///path/to/docker.sock or tcp://host:port`
    })
  }
  t.end()
})

const runtimeAt = (host: string) =>
  new DockerRuntime({
    instanceId: 'x',
    signatures,
    clock,
    log,
    settings: settingsFrom(settings, { DOCKER_HOST: host })
  })

test('an engine that is away is told by what is wrong: no socket, nobody listening, unknown host', async t => {
  await t.rejects(runtimeAt('unix:///nowhere/docker.sock').info(), {
    status: 503,
    code: 'E_ENGINE_UNREACHABLE',
    message: /\/nowhere\/docker\.sock: there is no such socket; start dockerd, or set DOCKER_HOST/,
    details: { reason: 'no-socket' }
  })
  await t.rejects(runtimeAt('tcp://127.0.0.1:1').list({}), {
    status: 503,
    code: 'E_ENGINE_UNREACHABLE',
    message: /nothing accepts connections/
  })
  await t.rejects(runtimeAt('tcp://engine.invalid:2375').ensureNetwork({ id: 'x', slug: 'x' }), {
    code: 'E_ENGINE_UNREACHABLE',
    message: /could not be found/
  })
  t.match(engineProblem(Object.assign(new Error('x'), { code: 'EACCES' }), '/var/run/docker.sock', 'x'), {
    status: 503,
    code: 'E_ENGINE_UNREACHABLE',
    message: /^permission denied on \/var\/run\/docker\.sock.*group/,
    details: { reason: 'permission' }
  })
})

engineTest("a user who must not use the socket is told so by the engine's own refusal", async t => {
  const script = `
    process.chdir('/')
    const { DockerRuntime } = await import(${JSON.stringify(new URL('../docker-runtime.ts', import.meta.url).href)})
    await import('dockerode')
    const runtime = new DockerRuntime({ instanceId: 'x', clock: { now: () => new Date() }, log: {}, settings: { docker_host: process.env.DOCKER_HOST, subnets: { text: '172.30.0.0/16' } } })
    process.setgroups([]); process.setegid(65534); process.seteuid(65534)
    await runtime.info().catch(error => console.log(error.message))`
  const run = spawnSync(
    process.execPath,
    ['--import=tsx', '--conditions=busbar-source', '--input-type=module', '-e', script],
    { encoding: 'utf8' }
  )
  t.ok(run.stdout.startsWith(`permission denied on ${socketPath()}: `), run.stdout + run.stderr)
})

/** Where the engine of these tests listens. */
function socketPath(): string {
  const engine = findEngine(settingsFrom(settings, process.env))
  if (engine.kind !== 'socket') throw new Error('these tests need an engine on a socket of this machine')
  return engine.path
}

/** A door in front of the real engine that can be shut: what a restart of dockerd looks like. */
async function engineDoor(t: Test): Promise<{ host: string; shut(): Promise<void>; open(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-engine-'))
  const path = join(directory, 'docker.sock')
  const sockets = new Set<Socket>()
  let server: Server | undefined
  const open = async () => {
    server = createServer(client => {
      const engine = connect(socketPath())
      for (const socket of [client, engine]) {
        sockets.add(socket)
        socket
          .on('error', () => {})
          .on('close', () => {
            sockets.delete(socket)
            client.destroy()
            engine.destroy()
          })
      }
      client.pipe(engine).pipe(client)
    })
    await new Promise<void>(resolve => server?.listen(path, resolve))
  }
  const shut = async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server?.close(resolve) ?? resolve(undefined))
    server = undefined
  }
  await open()
  t.teardown(async () => {
    await shut()
    await rm(directory, { recursive: true })
  })
  return { host: `unix://${path}`, shut, open }
}

engineTest('an engine that comes back is used again without a restart of the platform', async t => {
  const door = await engineDoor(t)
  const runtime = runtimeAt(door.host)
  await runtime.info()
  await door.shut()
  await t.rejects(runtime.info(), { status: 503, code: 'E_ENGINE_UNREACHABLE' })
  t.match(await runtime.info({ maxAgeMs: 60_000 }), { cores: Number }, 'what was answered before will do')
  await door.open()
  t.match(await runtime.info(), { containers: Number })
})

engineTest('events tell the life of our containers only, beginning with resync', async t => {
  const { runtime, projectId, spec } = startLab(t)
  const stranger = startLab(t)
  const stop = new AbortController()
  const seen: ContainerEvent[] = []
  const reading = (async () => {
    for await (const event of runtime.events(stop.signal)) seen.push(event)
  })()
  await until(() => seen[0], 'resync')
  t.same(seen, [{ kind: 'resync' }])

  const network = await runtime.ensureNetwork({ id: projectId, slug: `v${projectId.slice(0, 8)}` })
  const foreign = await stranger.runtime.create(stranger.spec('foreign', 'none'))
  await stranger.runtime.start(foreign)
  const id = await runtime.create(
    spec('events', network, {
      owner: { projectId, applicationId: 'app' },
      healthCommand: {
        command: 'true',
        intervalSeconds: 1,
        timeoutSeconds: 5,
        retries: 1,
        startPeriodSeconds: 0
      }
    })
  )
  await runtime.start(id)
  await until(() => seen.find(event => event.kind === 'container' && event.action === 'healthy'), 'healthy')
  await runtime.stop(id, 5)
  await runtime.remove(id)
  await until(() => seen.find(event => event.kind === 'container' && event.action === 'destroy'), 'destroy')
  stop.abort()
  await reading

  const ours = seen.filter(event => event.kind === 'container')
  t.ok(
    ours.every(
      event =>
        event.containerId === id && event.owner.applicationId === 'app' && event.owner.projectId === projectId
    )
  )
  t.same(
    ours.map(({ action }) => action),
    ['start', 'healthy', 'die', 'stop', 'destroy']
  )
  t.equal(ours.find(({ action }) => action === 'die')?.exitCode, 0)
})

engineTest(
  'a lost event stream is followed again with growing pauses, and each return yields resync',
  async t => {
    const door = await engineDoor(t)
    const pauses: number[] = []
    let reopenAfter = Infinity
    const patient: Clock = {
      ...clock,
      sleep: async ms => {
        pauses.push(ms)
        if (pauses.length >= reopenAfter) {
          reopenAfter = Infinity
          await door.open()
        }
      }
    }
    const runtime = new DockerRuntime({
      instanceId: 'nobody',
      signatures,
      clock: patient,
      log,
      settings: settingsFrom(settings, { DOCKER_HOST: door.host })
    })
    const stop = new AbortController()
    const seen: ContainerEvent[] = []
    const reading = (async () => {
      for await (const event of runtime.events(stop.signal)) seen.push(event)
    })()
    await until(() => seen[0], 'the first resync')
    reopenAfter = 7
    await door.shut()
    await until(() => seen[1], 'the second resync')
    t.match(seen, [
      { kind: 'resync', outage: undefined },
      { kind: 'resync', outage: { lostAt: Date, backAt: Date } }
    ])
    t.equal(seen.length, 2)
    t.same(pauses.slice(0, 7), [1000, 2000, 2000, 2000, 2000, 2000, 2000])
    stop.abort()
    await reading
  }
)
