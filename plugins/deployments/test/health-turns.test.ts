import { EventEmitter, on } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ContainerEvent } from 'busbar/api/containers'
import { FairQueue, type Log } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { HealthWatch } from '../health/health-watch.js'

const intervalMs = 30_000
/** A port of which the engine never says where it is. */
const lost = 0
const silentLog = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Log

async function serve(t: Test, answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await until(() => server.listening, 'the server listens')
  return (server.address() as AddressInfo).port
}

/** A watch of what runs: `ports` says for each deployment whose it is and where it listens. */
function watch(t: Test, ports: ReadonlyArray<readonly [id: string, owner: string, port: number]>) {
  const clock = testClock()
  const ended = new AbortController()
  const told: string[] = []
  const changes: Array<readonly [string, object]> = []
  const state = new Map<string, 'passing' | 'failing'>(ports.map(([id]) => [id, 'passing']))
  const engine = { lists: 0, dials: 0, name: 'container', isStopped: false }
  const engineEvents = new EventEmitter()
  const healthWatch = new HealthWatch({
    clock,
    log: silentLog,
    intervalMs,
    store: {
      watched: async () =>
        ports.map(([id, owner, port]) => ({
          id,
          application_id: `application of ${id}`,
          application_status: 'running' as const,
          owner_id: owner,
          health_status: state.get(id) ?? null,
          http_check: { path: '/health', expectStatus: 0, port }
        })),
      change: async (id, change) => {
        changes.push([id, change])
        if (change.health_status !== undefined) state.set(id, change.health_status as 'passing' | 'failing')
      }
    },
    registry: {
      followHealth: async (_application, id, health) => {
        told.push(`${id} ${health}`)
      }
    },
    runtime: {
      list: async () => {
        engine.lists++
        return ports.map(([id]) => ({
          id: `${engine.name} of ${id}`,
          status: engine.isStopped ? 'exited' : 'running',
          owner: { deploymentId: id }
        })) as never
      },
      async *events(signal) {
        yield { kind: 'resync' }
        for await (const [event] of on(engineEvents, 'event', { signal })) yield event as ContainerEvent
      },
      dial: async (id, port) => {
        engine.dials++
        if (engine.isStopped || !id.startsWith(engine.name)) throw new Error('it does not run')
        return port === lost ? await new Promise<never>(() => {}) : { host: '127.0.0.1', port }
      }
    }
  })
  const running = healthWatch.run(ended.signal)
  t.teardown(async () => {
    ended.abort(new Error('the test is over'))
    await running
  })
  const ends = (id: string): void => {
    const event: ContainerEvent = {
      kind: 'container',
      action: 'die',
      containerId: `${engine.name} of ${id}`,
      exitCode: 0,
      owner: { deploymentId: id }
    }
    engineEvents.emit('event', event)
  }
  return { clock, told, changes, engine, ends }
}

test('checks that hang keep nobody else from being asked in time, and have a share of what is asked at once', async t => {
  let hanging = 0
  let most = 0
  const silent = await serve(t, (_, response) => {
    most = Math.max(most, ++hanging)
    response.once('close', () => hanging--)
  })
  let asked = 0
  const failing = await serve(t, (_, response) => {
    asked++
    response.writeHead(500).end()
  })
  const greedy = Array.from({ length: 100 }, (_, index) => [`a${index}`, 'ann', silent] as const)
  const { clock, told } = watch(t, [...greedy, ['b', 'bob', failing]])

  for (let times = 1; times <= 3; times++) {
    await until(() => asked === times, `question ${times}`)
    await clock.advance(intervalMs)
  }
  await until(() => told.includes('b unhealthy'), 'the fault is seen')
  t.ok(most > 1, 'they were asked')
  t.ok(most <= 16, `${most} of them were asked at once`)
})

test('containers are listed when one is not known, and one that has gone is looked for instead of failing', async t => {
  let asked = 0
  const well = await serve(t, (_, response) => {
    asked++
    response.end()
  })
  const { clock, told, engine, ends } = watch(t, [['a', 'ann', well]])
  const look = async (answers: number): Promise<void> => {
    await clock.advance(intervalMs)
    await until(() => asked === answers, `answer ${answers}`)
  }
  await until(() => asked === 1, 'the first answer')
  for (const answers of [2, 3, 4]) await look(answers)
  t.equal(engine.lists, 1, 'it is known')
  t.equal(engine.dials, 1, 'and so is where it listens')
  ends('a')
  engine.name = 'another container'
  await clock.advance(intervalMs)
  await look(5)
  t.equal(engine.lists, 2, 'it has been replaced')
  ends('a')
  engine.isStopped = true
  for (let looks = 0; looks < 5; looks++) await clock.advance(intervalMs)
  t.ok(engine.lists >= 5, 'it is looked for')
  engine.isStopped = false
  await look(6)
  t.same(told, [], 'what does not run is not asked, and does not fail')
})

test('where a container listens is looked for anew when it did not answer as it should', async t => {
  let asked = 0
  const failing = await serve(t, (_, response) => {
    asked++
    response.writeHead(asked === 2 ? 500 : 200).end()
  })
  const { clock, engine } = watch(t, [['a', 'ann', failing]])
  for (const [answers, dials] of [
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2]
  ] as const) {
    await until(() => asked === answers, `answer ${answers}`)
    t.equal(engine.dials, dials, `after ${answers}`)
    await clock.advance(intervalMs)
  }
})

test('a question that the engine never answers keeps nobody else from being asked', async t => {
  let asked = 0
  const well = await serve(t, (_, response) => {
    asked++
    response.end()
  })
  const { clock } = watch(t, [
    ['a', 'ann', lost],
    ['b', 'bob', well]
  ])
  for (let times = 1; times <= 3; times++) {
    await until(() => asked === times, `question ${times}`)
    await clock.advance(intervalMs)
  }
})

test('the owners take turns, each in its own order, and nobody has more than its share', async t => {
  const queue = new FairQueue({ most: 4, maxPerOwner: 2 })
  const take = (): string | undefined => queue.take()?.id
  for (const id of ['a1', 'a2', 'a3', 'a1']) queue.add({ owner: 'ann', id })
  t.same([take(), take(), take()], ['a1', 'a2', undefined], 'ann has her share')
  for (const id of ['b1', 'b2', 'b3']) queue.add({ owner: 'bob', id })
  queue.add({ owner: 'cid', id: 'c1' })
  t.same([take(), take(), take()], ['b1', 'c1', undefined], 'bob and cid take turns until there are four')
  queue.add({ owner: 'dan', id: 'd1' })

  queue.end({ owner: 'ann', id: 'a1' })
  t.equal(take(), 'a3', 'ann has waited longest')
  queue.add({ owner: 'ann', id: 'a1' })
  queue.add({ owner: 'ann', id: 'a2' })
  queue.end({ owner: 'ann', id: 'a3' })
  t.equal(take(), 'b2', 'one after another, however much ann adds')
  queue.end({ owner: 'bob', id: 'b1' })
  t.equal(take(), 'd1')
  queue.end({ owner: 'ann', id: 'a2' })
  t.equal(take(), 'a1')
  queue.end({ owner: 'cid', id: 'c1' })
  t.equal(take(), 'b3')
  queue.end({ owner: 'ann', id: 'a1' })
  t.equal(take(), undefined, 'what was under way when it was added does not wait')
})
