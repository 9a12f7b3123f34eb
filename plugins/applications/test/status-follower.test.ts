import { EventEmitter, on, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { applicationRegistry } from 'busbar/api/applications'
import type { ContainerEvent, ContainerRuntime, ContainerState } from 'busbar/api/containers'
import type { Bus, Events, Log } from 'busbar/sdk'
import { createTestKernel, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { DeployStore } from '../deploy-store.js'
import { StatusBoard } from '../status-board.js'
import { StatusFollower } from '../status-follower.js'

const [first, second] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
const quiet = { warn: () => {}, error: () => {} } as unknown as Log

/** An application whose container is that of the deployment `first`, and a follower on an engine that is told what to say. */
async function follow(t: Test) {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  // Nobody else follows its container.
  await k.disable('runtime-docker', { force: true })
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const { body } = await ann.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const id: string = body.id
  await record(k, id, first)

  const engine = new EventEmitter()
  const state = (status: ContainerState['status']) =>
    ({
      id: 'c',
      status,
      exitCode: 0,
      oomKilled: false,
      health: null,
      owner: { applicationId: id, deploymentId: first }
    }) as unknown as ContainerState
  /** What the engine lists; `meanwhile` happens before the answer arrives. */
  const list = { status: 'running' as ContainerState['status'], meanwhile: async (): Promise<void> => {} }
  const runtime = {
    async *events(signal: AbortSignal) {
      for await (const [event] of on(engine, 'event', { signal })) {
        yield event as ContainerEvent
        engine.emit('followed')
      }
    },
    async list() {
      const found = [state(list.status)]
      await list.meanwhile()
      return found
    }
  } as unknown as ContainerRuntime
  const published: unknown[] = []
  const bus = {
    publish: (_channel: string, _event: string, data: { status: string }) => {
      published.push(data.status)
    },
    onSignal: (_topic: string, look: (id: string) => void) => {
      engine.on('look', () => look(id))
      return () => {}
    }
  } as unknown as Bus
  const store = new DeployStore(k.database('applications'))
  const emitted: unknown[] = []
  const events: Events = {
    emit: async (_event, data) => void emitted.push(data),
    emitEach: async (_event, facts) => void emitted.push(...facts)
  }
  const clock = testClock()
  const board = new StatusBoard({ store, db: k.database('applications'), events, bus, clock })
  const stop = new AbortController()
  const follower = new StatusFollower({
    store,
    board,
    bus,
    log: quiet,
    runtime: {
      get: () => runtime,
      whileAvailable: async (signal, work) => await work(runtime, signal).catch(() => {})
    }
  })
  const running = follower.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return {
    list,
    published,
    emitted,
    clock,
    project: project.id as string,
    askStop: async () => await store.noteStopAsked(id, clock.now()),
    look: () => engine.emit('look'),
    tell: (event: 'resync' | 'start' | 'die' | 'unhealthy', exitCode = 0) => {
      const owner = { applicationId: id, deploymentId: first }
      engine.emit(
        'event',
        event === 'resync'
          ? { kind: event }
          : { kind: 'container', action: event, containerId: 'c', owner, exitCode }
      )
    },
    followed: async () => await once(engine, 'followed', { signal: AbortSignal.timeout(10_000) }),
    registry: k.service(applicationRegistry),
    record: async (deploymentId: string) => await record(k, id, deploymentId),
    id,
    status: async () => (await store.deployable(id))?.status
  }
}

async function record(k: TestKernel, id: string, deploymentId: string): Promise<void> {
  const now = new Date()
  await k.transaction(async tx => {
    await k
      .service(applicationRegistry)
      .recordDeployed(id, { deploymentId, startedAt: now, finishedAt: now, rebuilt: true }, tx)
  })
}

test('what the engine says of a container becomes the status of its application', async t => {
  const { list, tell, followed, status, published } = await follow(t)
  list.status = 'exited'
  const done = followed()
  tell('resync')
  await done
  t.equal(await status(), 'stopped')
  t.same(published, ['stopped'])
})

test('a status that was written while the engine was asked is not overwritten by what it said before', async t => {
  const { list, tell, followed, registry, id, status, published } = await follow(t)
  list.status = 'exited'
  list.meanwhile = async () => await registry.setStatus(id, 'error')
  const done = followed()
  tell('resync')
  await done
  t.equal(await status(), 'error')
  t.same(published, [], 'and its channel is not told of it')
})

test('an application that was deployed while the engine was asked does not get the status of the old container', async t => {
  const { list, tell, followed, status, published, record } = await follow(t)
  list.status = 'exited'
  list.meanwhile = async () => await record(second)
  const done = followed()
  tell('resync')
  await done
  t.equal(await status(), 'running')
  t.same(published, [])
})

test('events that come while a container is looked at count after what was seen', async t => {
  const { list, tell, look, followed, status, published } = await follow(t)
  const asked = new EventEmitter()
  list.status = 'exited'
  list.meanwhile = async () => {
    asked.emit('now')
    await once(asked, 'answer')
  }
  const looking = once(asked, 'now')
  look()
  await looking
  const started = followed().then(followed)
  tell('die')
  tell('start')
  // A follower that does not let them wait has followed them by then.
  await Promise.race([started, sleep(1_000)])
  const before = published.length
  asked.emit('answer')
  await started
  await until(() => published.length > before, 'what was seen is written')
  t.equal(await status(), 'running', 'the last that happened to it was a start')
})

test('a crash and a failed check are events, each at most once an hour until the next deploy', async t => {
  const { tell, followed, emitted, clock, record, id, project } = await follow(t)
  const then = async (...told: ReadonlyArray<readonly ['start' | 'die' | 'unhealthy', number?]>) => {
    for (const [event, exitCode] of told) {
      const done = followed()
      tell(event, exitCode)
      await done
    }
  }
  const failure = (status: string) => ({ applicationId: id, projectId: project, application: 'web', status })
  await then(['die', 0], ['start'], ['die', 143], ['start'])
  t.same(emitted, [], 'an end without an error is no crash')
  await then(['die', 1], ['start'], ['die', 1], ['start'])
  t.same(emitted, [failure('error')], 'one that crashes again and again is told of once')
  await then(['unhealthy'], ['start'], ['unhealthy'], ['start'])
  t.same(emitted, [failure('error'), failure('unhealthy')])
  await clock.advance(3_599_999)
  await then(['die', 1], ['start'])
  t.equal(emitted.length, 2)
  await clock.advance(1)
  await then(['die', 1], ['start'])
  t.same(emitted.slice(2), [failure('error')], 'an hour later it is news again')
  await record(first)
  await then(['die', 1], ['start'])
  t.equal(emitted.length, 4, 'and so it is after a deploy')
})

test('an end that looks like a crash is none where somebody has asked for a stop', async t => {
  const { tell, followed, emitted, clock, askStop } = await follow(t)
  const die = async () => {
    for (const event of ['die', 'start'] as const) {
      const done = followed()
      tell(event, 1)
      await done
    }
  }
  await askStop()
  await die()
  await clock.advance(44_999)
  await die()
  t.same(emitted, [])
  await clock.advance(1)
  await die()
  t.match(emitted, [{ status: 'error' }])
})
