import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { BuildCache } from '../build-cache.js'
import { EngineClient } from '../engine-client.js'
import type { Footprint } from '../footprint.js'
import { Identity } from '../identity.js'
import { buildImage } from '../image-build.js'
import { Images } from '../images.js'
import { clock, signatures } from './lab.js'

const isList = ({ url = '' }: IncomingMessage): boolean => url.includes('/images/json')

/** By the clock of the engine, which is not that of the platform. */
const begunAt = new Date('2031-02-03T04:05:06Z')
const image = (id: string, seconds: number, size: number, parent = '') => ({
  Id: id,
  ParentId: parent,
  Size: size,
  Created: begunAt.getTime() / 1000 + seconds
})

test('the images of a build are those made since it began by the clock of the engine, listed when it is measured', async t => {
  const asked: string[] = []
  let made: object[] = []
  const server = createServer((request, response) => {
    const { url = '', method = '' } = request
    request.resume()
    asked.push(`${method} ${url}`)
    if (isList(request)) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify([image('before', -60, 1000), ...made]))
    } else if (url.includes('/images/before/')) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(image('before', -60, 1000)))
    } else {
      // Events, and the output of the build.
      response.setHeader('date', begunAt.toUTCString())
      response.flushHeaders()
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const engine = new EngineClient({ docker_host: `tcp://127.0.0.1:${port}` })
  const identity = new Identity('footprint-test', signatures)
  const footprints = new Set<Footprint>()
  const parts = {
    engine,
    identity,
    clock,
    network: async () => 'builds',
    parentGroup: async () => undefined,
    images: new Images({ engine, instanceId: 'footprint-test', identity }),
    cache: new BuildCache({ engine, identity }),
    footprints,
    steps: async () => []
  }
  const cancel = new AbortController()
  const reason = new Error('enough')
  const building = t.rejects(
    buildImage(
      parts,
      Readable.from(['']),
      {
        tag: 'made:1',
        dockerfile: 'Dockerfile',
        buildArgs: {},
        owner: { projectId: 'p', applicationId: 'a' },
        memoryBytes: 2 ** 30,
        cpus: 1
      },
      { onLine: () => {}, signal: cancel.signal }
    ),
    reason
  )
  await until(() => asked.some(call => call.startsWith('POST') && call.includes('/build?')), 'the build')
  t.notOk(
    asked.some(call => call.includes('/images/json')),
    'an engine that has many needs long to list them'
  )
  made = [image('first', 0, 1010, 'before'), image('second', 3, 1030, 'first')]
  const [footprint] = footprints
  t.equal((await footprint?.measure())?.bytes, 30)
  cancel.abort(reason)
  await building
})
