import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, optional, service } from 'busbar/sdk'
import { createTestKernel, type TestKernel, type TestKernelOptions, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

/** Answers with the ids of those that it went through. */
interface Chain {
  ask(): Promise<string>
}
const ground = service<Chain>('ground.chain')
const middle = service<Chain>('middle.chain')
const host = service<Chain>('host.chain')

/** What happened in which order while plugins stopped, and the request that one of them was in the middle of. */
class Stops {
  readonly seen: string[] = []
  readonly goOn = new EventEmitter()

  /** Asks what the plugin uses when it has had the time to go. */
  async note(id: string, below?: Chain): Promise<void> {
    this.seen.push(`${id} begins`)
    await sleep(100)
    const answer = await below?.ask().catch((error: Error) => `failed: ${error.message}`)
    this.seen.push(answer === undefined ? `${id} ends` : `${id} ends with ${answer}`)
  }
  isBefore(first: string, second: string): boolean {
    const [one, other] = [first, second].map(start => this.seen.findIndex(line => line.startsWith(start)))
    return one !== undefined && other !== undefined && one >= 0 && one < other
  }
}

/** `upper` requires `middle`, which requires `ground`; `guest` uses `host` and can do without; `alone` uses nobody. */
async function startHouse(t: Test): Promise<{ k: TestKernel; stops: Stops }> {
  const stops = new Stops()
  const inline: NonNullable<TestKernelOptions['inline']> = [
    {
      manifest: { id: 'ground' },
      definition: definePlugin({
        id: 'ground',
        start: ({ onStop }) => {
          onStop(async () => await stops.note('ground'))
          return { ask: async () => 'ground' }
        },
        provides: (provide, self) => provide(ground, self)
      })
    },
    {
      manifest: { id: 'middle', requires: { ground: '*' } },
      definition: definePlugin({
        id: 'middle',
        needs: { ground },
        start: ({ use, onStop }) => {
          onStop(async () => await stops.note('middle', use.ground))
          return { ask: async () => `middle ${await use.ground.ask()}` }
        },
        provides: (provide, self) => provide(middle, self)
      })
    },
    {
      manifest: { id: 'upper', requires: { middle: '*' } },
      definition: definePlugin({
        id: 'upper',
        needs: { middle },
        start: ({ use, onStop }) => {
          onStop(async () => await stops.note('upper', use.middle))
          return { middle: use.middle }
        },
        routes(route) {
          route({
            method: 'GET',
            url: '/api/upper/slow',
            summary: 's',
            access: allow.public('a test'),
            handler: async (_request, self) => {
              stops.seen.push('a request')
              await once(stops.goOn, 'now')
              return { text: await self.middle.ask() }
            }
          })
        }
      })
    },
    {
      manifest: { id: 'host' },
      definition: definePlugin({
        id: 'host',
        start: ({ onStop }) => {
          onStop(async () => await stops.note('host'))
          return { ask: async () => 'host' }
        },
        provides: (provide, self) => provide(host, self)
      })
    },
    {
      manifest: { id: 'guest', optional: { host: '*' } },
      definition: definePlugin({
        id: 'guest',
        needs: { host: optional(host) },
        start: ({ use, onStop }) => {
          onStop(async () => await stops.note('guest', use.host.get()))
          return {}
        }
      })
    },
    {
      manifest: { id: 'alone' },
      definition: definePlugin({
        id: 'alone',
        start: ({ onStop }) => {
          onStop(async () => await stops.note('alone'))
          return {}
        }
      })
    }
  ]
  const k = await createTestKernel({ inline })
  t.teardown(() => k.close())
  return { k, stops }
}

test('a platform that stops ends each plugin after those that use it, which can use it to their end', async t => {
  const { k, stops } = await startHouse(t)
  const slow = k.as.anonymous().get('/api/upper/slow')
  await until(() => stops.seen.includes('a request'), 'a request is under way')
  const stopped = k.stop()
  await until(
    () => stops.isBefore('a request', 'alone ends'),
    'a plugin that nobody uses ends without waiting'
  )
  await until(() => stops.isBefore('a request', 'guest ends'), 'another one ends beside it')
  t.notOk(stops.isBefore('a request', 'middle begins'), 'what the request uses is still there')
  stops.goOn.emit('now')
  t.match(await slow, { status: 200, body: { text: 'middle ground' } }, 'the request under way ends well')
  await stopped
  t.ok(stops.seen.includes('upper ends with middle ground'))
  t.ok(stops.seen.includes('guest ends with host'), 'also one that could do without')
  t.ok(stops.seen.includes('middle ends with ground'))
  t.ok(stops.isBefore('upper ends', 'middle begins'))
  t.ok(stops.isBefore('guest ends', 'host begins'))
  t.ok(stops.isBefore('middle ends', 'ground begins'))
})

test('a plugin that is turned off with those that need it ends after them', async t => {
  const { k, stops } = await startHouse(t)
  const admin = await k.as.session()
  t.equal((await admin.post('/api/plugins/ground/disable', { cascade: true })).status, 200)
  t.same(stops.seen, [
    'upper begins',
    'upper ends with middle ground',
    'middle begins',
    'middle ends with ground',
    'ground begins',
    'ground ends'
  ])
})

test('what a plugin has opened is closed in reverse, one after another, also where one of them fails', async t => {
  const seen: string[] = []
  const close = async (name: string): Promise<void> => {
    seen.push(`${name} begins`)
    await sleep(20)
    seen.push(`${name} ends`)
  }
  const opener = definePlugin({
    id: 'opener',
    start: ({ onStop }) => {
      onStop(async () => await close('first'))
      onStop(() => {
        seen.push('second fails')
        throw new Error('as it is meant to')
      })
      onStop(async () => await close('third'))
      return {}
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'opener' }, definition: opener }] })
  t.teardown(() => k.close())
  await k.disable('opener')
  t.same(seen, ['third begins', 'third ends', 'second fails', 'first begins', 'first ends'])
})
