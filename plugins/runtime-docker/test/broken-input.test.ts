import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { loadedPrefix } from 'busbar/api/images'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { BuildCache } from '../build-cache.js'
import { EngineClient } from '../engine-client.js'
import type { Footprint } from '../footprint.js'
import { Identity } from '../identity.js'
import { buildImage } from '../image-build.js'
import { loadImage } from '../image-load.js'
import { Images } from '../images.js'
import { clock, signatures } from './lab.js'

const reason = new Error('the disk of the platform is gone')
const { signal } = new AbortController()

/** An engine that waits for the end of what it is sent. */
async function startEngine(t: Test) {
  const bodies: Array<'begun' | 'whole' | 'cut'> = []
  const server = createServer({ requestTimeout: 0, headersTimeout: 0 }, (request, response) => {
    request.resume()
    if (request.method !== 'POST') {
      response.flushHeaders()
      return
    }
    request.once('data', () => bodies.push('begun'))
    request.once('end', () => {
      bodies.push('whole')
      response.end()
    })
    request.once('error', () => bodies.push('cut'))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const engine = new EngineClient({ docker_host: `tcp://127.0.0.1:${port}` })
  const identity = new Identity('input-test', signatures)
  const parts = {
    engine,
    identity,
    clock,
    network: async () => 'builds',
    parentGroup: async () => undefined,
    images: new Images({ engine, instanceId: 'input-test', identity }),
    cache: new BuildCache({ engine, identity }),
    footprints: new Set<Footprint>(),
    steps: async () => []
  }
  const send = {
    load: async (archive: Readable) =>
      await loadImage(parts, archive, { name: `${loadedPrefix}input:latest`, signal }),
    build: async (context: Readable) =>
      await buildImage(
        parts,
        context,
        {
          tag: 'made:1',
          dockerfile: 'Dockerfile',
          buildArgs: {},
          owner: { projectId: 'p', applicationId: 'a' },
          memoryBytes: 2 ** 30,
          cpus: 1
        },
        { onLine: () => {}, signal }
      )
  }
  return { bodies, send }
}

test('what cannot be read to its end is no whole archive and no whole context for the engine', async t => {
  for (const way of ['load', 'build'] as const) {
    const { bodies, send } = await startEngine(t)
    const broken = Readable.from(
      (async function* () {
        yield Buffer.alloc(100_000)
        await until(() => bodies.includes('begun'), 'some of it to come')
        throw reason
      })()
    )
    await t.rejects(send[way](broken), reason, way)
    await until(() => bodies.length > 1, 'the engine to see its end')
    t.same(bodies, ['begun', 'cut'], way)
  }
})

test('what has failed before the engine is asked is not waited for', async t => {
  for (const way of ['load', 'build'] as const) {
    const { bodies, send } = await startEngine(t)
    const broken = new Readable({ read: () => {} })
    const sent = t.rejects(send[way](broken), reason, way)
    broken.destroy(reason)
    await sent
    t.same(bodies, [], way)
  }
})
