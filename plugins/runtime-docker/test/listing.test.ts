import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { BuildCache } from '../build-cache.js'
import { EngineClient } from '../engine-client.js'
import { Identity } from '../identity.js'
import { signatures } from './lab.js'

interface Answer {
  readonly status: number
  readonly body: unknown
}

/** An engine that answers each request once `answer` has. */
async function engine(t: Test, answer: (request: IncomingMessage) => Promise<Answer> | Answer) {
  const server = createServer((request, response) => {
    void Promise.resolve(answer(request)).then(({ status, body }) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const identity = new Identity('listing-test', signatures)
  const client = new EngineClient({ docker_host: `tcp://127.0.0.1:${port}` })
  return {
    identity,
    cache: new BuildCache({ engine: client, identity })
  }
}

const isList = ({ url = '' }: IncomingMessage): boolean => url.includes('/images/json')

test('whoever asks for the cache while it is listed shares the next list, which is newer than what they ask', async t => {
  const waiting: Array<() => void> = []
  let lists = 0
  const { cache } = await engine(t, async request => {
    if (isList(request)) {
      lists++
      await new Promise<void>(resolve => waiting.push(resolve))
    }
    return { status: 200, body: [] }
  })
  const first = cache.bytes({ applicationId: 'a' })
  await until(() => lists === 1, 'the first list')
  const others = Array.from({ length: 20 }, async (_, at) => await cache.bytes({ applicationId: `a${at}` }))
  await new Promise(resolve => setTimeout(resolve, 100))
  t.equal(lists, 1, 'one at a time')
  waiting.shift()?.()
  t.equal(await first, 0)
  await until(() => lists === 2, 'the second list')
  waiting.shift()?.()
  await Promise.all(others)
  t.equal(lists, 2)
  const last = cache.bytes({ applicationId: 'a' })
  await until(() => lists === 3, 'a list of its own')
  waiting.shift()?.()
  await last
})

test('a list that fails fails for those who share it, and the next one is asked for anew', async t => {
  let lists = 0
  const { cache } = await engine(t, request => {
    if (!isList(request)) return { status: 200, body: [] }
    return ++lists === 1 ? { status: 500, body: { message: 'broken' } } : { status: 200, body: [] }
  })
  const [first, second] = await Promise.allSettled([
    cache.bytes({ applicationId: 'a' }),
    cache.bytes({ applicationId: 'b' })
  ])
  t.match(first, { status: 'rejected', reason: { code: 'E_ENGINE_REFUSED' } })
  t.match(second, { status: 'fulfilled', value: 0 })
  t.equal(lists, 2)
})

test('a step that somebody else has removed meanwhile is as good as removed', async t => {
  const step = (at: number) => `sha256:${String(at).repeat(64)}`
  const removed: string[] = []
  const { cache, identity } = await engine(t, request => {
    if (request.method === 'DELETE') {
      removed.push(decodeURIComponent(request.url ?? ''))
      return removed.length === 1
        ? { status: 500, body: { message: `unrecognized image ID ${step(1)}` } }
        : { status: 200, body: [] }
    }
    if (!isList(request)) return { status: 200, body: [] }
    const Labels = identity.ofImage({ applicationId: 'a' })
    return {
      status: 200,
      body: [1, 2].map(at => ({
        Id: step(at),
        ParentId: '',
        Size: 1,
        Created: 0,
        RepoTags: null,
        RepoDigests: null,
        Labels
      }))
    }
  })
  await cache.clear({ applicationId: 'a' })
  t.equal(removed.length, 2, 'the next one is removed all the same')
})
