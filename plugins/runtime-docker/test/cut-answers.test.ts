import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { bounded } from 'busbar/sdk'
import type Docker from 'dockerode'
import { test } from 'tap'
import { BuildCache } from '../build-cache.js'
import { runInContainer } from '../container-exec.js'
import { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import { followProgress } from '../engine-progress.js'
import { engineEvents } from '../events/engine-events.js'
import { runTool, withHostTools } from '../host/host-tools.js'
import { Identity } from '../identity.js'
import { DiskMeasure } from '../inventory/disk-measure.js'
import { Inventory } from '../inventory/inventory.js'
import { guardLabelled } from '../label-guard.js'
import { containerLogs } from '../logs/container-logs.js'
import { PlatformContainer } from '../platform-container.js'
import { untilEngineRemoves } from '../step-end.js'
import { guardSteps } from '../step-guard.js'
import { cutEngine, cuts, whole } from './cut-engine.js'
import { clock, log, signatures } from './lab.js'

const id = 'a'.repeat(64)
const instanceId = 'cut-test'
const { signal } = new AbortController()
const pack = () => Readable.from([Buffer.alloc(1024)])

/** Of an engine in which no platform runs. */
function inventoryOf(engine: EngineClient): Inventory {
  const identity = new Identity(instanceId, signatures)
  return new Inventory({
    engine,
    identity,
    instanceId,
    log,
    owners: new ContainerOwners(engine, identity, log),
    platform: new PlatformContainer(engine, []),
    measure: new DiskMeasure({ engine, clock, log })
  })
}

async function drain(stream: NodeJS.ReadableStream): Promise<void> {
  for await (const _ of stream);
}

/** Every call of dockerode in this plugin, by its name there; those that answer with a stream read it to its end. */
const calls: Readonly<Record<string, (docker: Docker) => Promise<unknown>>> = {
  version: async docker => await docker.version(),
  info: async docker => await docker.info(),
  listContainers: async docker => await docker.listContainers({ all: true }),
  listImages: async docker => await docker.listImages({ all: true }),
  listNetworks: async docker => await docker.listNetworks(),
  listVolumes: async docker => await docker.listVolumes(),
  createContainer: async docker => await docker.createContainer({ Image: 'x' }),
  createNetwork: async docker => await docker.createNetwork({ Name: 'x' }),
  createVolume: async docker => await docker.createVolume({ Name: 'x' }),
  buildImage: async docker => await drain(await docker.buildImage(pack(), { t: 'x' })),
  loadImage: async docker => await drain(await docker.loadImage(pack(), { quiet: false })),
  importImage: async docker => await drain(await docker.importImage(Buffer.alloc(1024) as unknown as string)),
  getEvents: async docker => await drain(await docker.getEvents()),
  'getContainer.inspect': async docker => await docker.getContainer(id).inspect(),
  'getContainer.logs': async docker => await docker.getContainer(id).logs({ follow: false, stdout: true }),
  'getContainer.start': async docker => await docker.getContainer(id).start(),
  'getContainer.stop': async docker => await docker.getContainer(id).stop(),
  'getContainer.restart': async docker => await docker.getContainer(id).restart(),
  'getContainer.pause': async docker => await docker.getContainer(id).pause(),
  'getContainer.unpause': async docker => await docker.getContainer(id).unpause(),
  'getContainer.remove': async docker => await docker.getContainer(id).remove({ force: true }),
  'getContainer.rename': async docker => await docker.getContainer(id).rename({ name: 'y' }),
  'getContainer.update': async docker => await docker.getContainer(id).update({ PidsLimit: 1 }),
  'getContainer.wait': async docker => await docker.getContainer(id).wait({ condition: 'removed' }),
  'getContainer.stats': async docker => await docker.getContainer(id).stats({ stream: false }),
  'getContainer.exec': async docker => await docker.getContainer(id).exec({ Cmd: ['true'] }),
  'getExec.start': async docker => await drain(await docker.getExec(id).start({})),
  'getExec.resize': async docker => await docker.getExec(id).resize({ h: 24, w: 80 }),
  'getExec.inspect': async docker => await docker.getExec(id).inspect(),
  'getImage.inspect': async docker => await docker.getImage('x').inspect(),
  'getContainer.getArchive': async docker =>
    await drain(await docker.getContainer(id).getArchive({ path: '/' })),
  'getImage.get': async docker => await drain(await docker.getImage('x').get()),
  'getContainer.putArchive': async docker => await docker.getContainer(id).putArchive(pack(), { path: '/' }),
  'getImage.tag': async docker => await docker.getImage('x').tag({ repo: 'y' }),
  'getImage.remove': async docker => await docker.getImage('x').remove(),
  'getNetwork.inspect': async docker => await docker.getNetwork('x').inspect(),
  'getNetwork.connect': async docker => await docker.getNetwork('x').connect({ Container: id }),
  'getNetwork.disconnect': async docker => await docker.getNetwork('x').disconnect({ Container: id }),
  'getNetwork.remove': async docker => await docker.getNetwork('x').remove(),
  'getVolume.inspect': async docker => await docker.getVolume('x').inspect(),
  'getVolume.remove': async docker => await docker.getVolume('x').remove()
}

/** What reads an answer after the call of dockerode has given it. */
const readers: Readonly<
  Record<string, readonly [task: string, run: (engine: EngineClient) => Promise<unknown>, whole?: string]>
> = {
  'the output of a container': [
    'read the output of a container',
    async engine => {
      for await (const _ of containerLogs(engine, { containerId: id, hasTerminal: false }, { signal }));
    },
    // Of its stream, a piece of 127 bytes.
    `\u0001\0\0\0\0\0\0\u007f2026-01-02T03:04:05.000000000Z of which a part is missing`
  ],
  'the progress of a build': [
    'build the image',
    async engine =>
      await followProgress(
        engine,
        'build the image',
        signal,
        async docker => await docker.buildImage(pack(), { t: 'x' }),
        words => {
          throw new Error(words)
        },
        () => {}
      )
  ],
  'the progress of a load': [
    'load x',
    async engine =>
      await followProgress(
        engine,
        'load x',
        signal,
        async docker => await docker.loadImage(pack(), { quiet: false }),
        words => {
          throw new Error(words)
        },
        () => {}
      )
  ],
  'the containers of builds': [
    'send its events',
    async engine =>
      await new Promise((_, reject) => {
        guardLabelled(
          engine,
          'a=b',
          { memoryBytes: 1, cpus: 1, processes: 1 },
          { signal, onRefusal: reason => reject(new Error(reason)) }
        ).catch(reject)
      })
  ],
  'the steps of a build': [
    'send its events',
    async engine =>
      await new Promise((_, reject) => {
        guardSteps(engine, {
          caps: { memory: 1, memswap: 1, cpuperiod: 1, cpuquota: 1, shmsize: 1 },
          processes: 1,
          labels: {},
          onMislabelled: () => {},
          signal,
          onRefusal: reason => reject(new Error(reason))
        }).catch(reject)
      })
  ],
  'the end of a step': ['end a build', async engine => await untilEngineRemoves(engine, id, 60_000)],
  'the containers of an inventory': [
    'list containers',
    async engine => await inventoryOf(engine).containers()
  ],
  'the disk of an inventory': ['measure its disk', async engine => await inventoryOf(engine).diskUse()],
  'the cache of builds': [
    'list images',
    async engine =>
      await new BuildCache({ engine, identity: new Identity(instanceId, signatures) }).bytes({
        applicationId: 'a'
      })
  ]
}

const soon = async <T>(what: string, work: () => Promise<T>): Promise<T> =>
  await bounded(work, { ms: 10_000, what })

const unfinished = (task: string) => ({
  message: new RegExp(`was asked to ${task} and did not finish its answer`)
})

const body = JSON.stringify({ Id: id, of: 'which a part is missing' })

for (const [how, cut] of Object.entries(cuts)) {
  test(`a call whose answer is cut ${how} fails at once, and says what was asked`, async t => {
    const { engine } = await cutEngine(t, { answer: () => cut(body) })
    for (const patient of [undefined, true] as const)
      for (const [name, run] of Object.entries(calls))
        await t.rejects(
          soon(name, async () => await engine.call(`do ${name}`, run, patient && { patient })),
          { status: 503, code: 'E_ENGINE_UNREACHABLE', ...unfinished(`do ${name}`) },
          `${name}${patient === true ? ', patiently' : ''}`
        )
  })

  test(`what reads an answer that is cut ${how} ends at once, and says what was asked`, async t => {
    for (const [name, [task, run, whole = body]] of Object.entries(readers)) {
      const { engine } = await cutEngine(t, { answer: () => cut(whole) })
      await t.rejects(
        soon(name, async () => await run(engine)),
        unfinished(task),
        name
      )
    }
  })
}

/** Answered without a body. */
const withoutCut: readonly string[] = ['infoArchive']

test('every call of dockerode in this plugin is among those whose answers are cut here', t => {
  const folder = join(import.meta.dirname, '..')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    path => path.endsWith('.ts') && !path.startsWith('test/')
  )
  const known = new Set(Object.keys(calls).map(name => name.replace('getExec.', '').replace(/^.*\./, '')))
  const found = files.flatMap(path => {
    const code = readFileSync(join(folder, path), 'utf8')
    return [...code.matchAll(/\b(?:docker|exec|container)\s*(?:\.get\w+\([^()]*\)\s*)?\.(\w+)\(/g)]
      .map(([, name = '']) => name)
      .filter(name => !/^(?:get(?:Container|Image|Network|Volume|Exec)|slice)$/.test(name))
      .map(name => ({ path, name }))
  })
  t.ok(found.length > 30, 'calls were found')
  t.same(
    found.filter(
      ({ path, name }) => !known.has(name) && !withoutCut.includes(name) && path !== 'host/local-tools.ts'
    ),
    []
  )
  t.end()
})

test('an engine that falls silent in the middle of an answer is waited for as long as before one', async t => {
  const { engine } = await cutEngine(t, {
    answer: () => cuts['in the middle of a body with a length']?.(body) ?? '',
    staysOpen: true,
    silenceMs: 200
  })
  await Promise.all(
    Object.entries(calls).map(async ([name, run]) => {
      await t.rejects(
        soon(name, async () => await engine.call(`do ${name}`, run)),
        unfinished(`do ${name}`),
        name
      )
    })
  )
})

test('a call that is given up in the middle of its answer ends at once', async t => {
  const { engine } = await cutEngine(t, {
    answer: () => cuts['in the middle of a body with a length']?.(body) ?? '',
    staysOpen: true
  })
  const began = performance.now()
  await soon('the end of a step', async () => await untilEngineRemoves(engine, id, 200))
  t.ok(performance.now() - began < 5000)
})

test('text that is no JSON, although the engine calls it so, is no answer', async t => {
  // Without a length and without chunks, the end of the connection is the end of the answer.
  const { engine } = await cutEngine(t, {
    answer: () => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[{"Id":"a`
  })
  await t.rejects(
    engine.call('list images', async docker => await docker.listImages()),
    unfinished('list images')
  )
})

test('an answer without a body is a whole one', async t => {
  const { engine } = await cutEngine(t, { answer: () => 'HTTP/1.1 204 No Content\r\n\r\n' })
  await engine.call('start', async docker => await docker.getContainer(id).start())
  await engine.call('stop', async docker => await docker.getContainer(id).stop())
  t.pass('both are done')
})

test('a list is asked for again while the engine stumbles over an image that is being removed', async t => {
  const refusal = JSON.stringify({
    message:
      'failed to retrieve image list: layer sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef was not found (corruption?)'
  })
  let refusals = 0
  const { engine, asked } = await cutEngine(t, {
    answer: () =>
      refusals-- > 0
        ? `HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: ${refusal.length}\r\n\r\n${refusal}`
        : whole('[]')
  })
  const list = async (): Promise<unknown> =>
    await engine.call('list images', async docker => await docker.listImages(), { lists: true })
  refusals = 3
  t.same(await list(), [])
  t.equal(asked.length, 4)
  refusals = 100
  await t.rejects(list(), { code: 'E_ENGINE_REFUSED', message: /was not found/ }, 'not for ever')
  t.equal(asked.length, 11)
  await t.rejects(
    engine.call('make a container', async docker => await docker.listImages()),
    { code: 'E_ENGINE_REFUSED' },
    'what is no list is asked once'
  )
  t.equal(asked.length, 12)
})

test('a refusal keeps its status and its words', async t => {
  const text = JSON.stringify({ message: 'no such image - x' })
  const { engine } = await cutEngine(t, {
    answer: () =>
      `HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
  })
  await t.rejects(
    engine.call('look', async docker => await docker.getImage('x').inspect()),
    { code: 'E_ENGINE_REFUSED', message: /no such image - x/ }
  )
  t.equal(
    await engine.call('look', async docker => await docker.getImage('x').inspect(), { absent: [404] }),
    undefined
  )
})

test('events whose stream is cut are followed anew', async t => {
  const { engine, asked } = await cutEngine(t, {
    answer: () => cuts['in the middle of a chunk']?.(body) ?? ''
  })
  const end = new AbortController()
  const owners = { of: async () => undefined }
  let resyncs = 0
  await soon('the second stream of events', async () => {
    const source = { engine, owners, instanceId, clock, log }
    for await (const { event } of engineEvents(source, { count: 0, isOpen: false }, end.signal)) {
      if (event.kind === 'resync' && ++resyncs === 2) end.abort()
    }
  })
  t.equal(asked.length, 2)
})

test('a program in a container whose output is cut has no exit code, and that is said', async t => {
  const { engine } = await cutEngine(t, {
    answer: ({ url = '' }) =>
      url.endsWith('/start')
        ? (cuts['in the middle of a chunk']?.(body) ?? '')
        : whole(JSON.stringify({ Id: id, ExitCode: null }))
  })
  await t.rejects(
    soon('the program', async () => await runInContainer(engine, id, ['true'], { onLine: () => {}, signal })),
    unfinished('run true in a container')
  )
})

/** An answer without an end of its own, as programs have it: on the connection itself where they are sent something. */
const output = ({ upgrade }: IncomingHttpHeaders): string =>
  upgrade === undefined
    ? 'HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n'
    : 'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n'

test('a tool of the host whose connection stays open in silence is given up, and says what it waited for', async t => {
  const { engine } = await cutEngine(t, {
    answer: ({ url = '', headers }) =>
      url.endsWith('/start') ? output(headers) : whole(JSON.stringify({ Id: id, ExitCode: null })),
    staysOpen: true
  })
  for (const input of [undefined, 'rules'])
    await t.rejects(
      soon(
        'the tool',
        async () => await runTool(engine, id, ['iptables-restore', '-n'], { input, limitMs: 200 })
      ),
      { message: /iptables-restore.* within 0\.2 s/ },
      input === undefined ? 'without input' : 'with input'
    )
})

test('a tool of the host whose output ends before it has ended is not taken for one that has failed', async t => {
  const { engine } = await cutEngine(t, {
    answer: ({ url = '', headers }) =>
      url.endsWith('/start') ? output(headers) : whole(JSON.stringify({ Id: id, ExitCode: null }))
  })
  for (const input of [undefined, 'rules'])
    await t.rejects(
      soon('the tool', async () => await runTool(engine, id, ['iptables-restore'], { input })),
      { message: /the output of iptables-restore was cut/ },
      input === undefined ? 'without input' : 'with input'
    )
})

test('host tools are not opened where the answer is cut', async t => {
  for (const [how, cut] of Object.entries(cuts)) {
    const { engine } = await cutEngine(t, { answer: () => cut(body) })
    await t.rejects(
      soon('host tools', async () => await withHostTools(engine, instanceId, async () => t.fail('opened'))),
      unfinished('list containers'),
      how
    )
  }
})
