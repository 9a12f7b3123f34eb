import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import { Problem } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { buildkitProgram } from '../engines/buildkit-program.js'
import { dockerdProgram } from '../engines/dockerd-program.js'
import { containerName } from '../engines/engine-names.js'
import { ProjectEngines } from '../engines/project-engines.js'
import { clock, log, ownEngineKinds } from './kit.js'

test('an engine keeps no more than it may after each build, also one that is never idle', async t => {
  const container = {
    id: 'engine',
    name: containerName({ projectId: 'project', program: buildkitProgram }),
    image: 'buildkit:lab',
    owner: { projectId: 'project' },
    status: 'running'
  } as ContainerState
  const pruned: string[] = []
  const engines = new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime: {
      list: async () => [container],
      setCaps: async () => {},
      exec: async (_id: string, argv: readonly string[]) => {
        if (argv.includes('prune')) pruned.push(argv.join(' '))
        return 0
      }
    } as unknown as ContainerRuntime,
    clock,
    log,
    records: {
      used: async () => {},
      stopped: async () => {},
      removed: async () => {},
      live: async () => []
    },
    cacheBytes: 5e9
  })
  const wanted = { projectId: 'project', program: buildkitProgram, image: 'buildkit:lab' }
  const limits = { memoryBytes: 2 ** 30, cpus: 1 }
  const build = async (run: () => Promise<void>): Promise<void> =>
    await engines.use(wanted, { deploymentId: 'one', limits }, new AbortController().signal, run)
  let end = (): void => {}
  const holder = build(
    async () =>
      await new Promise(resolve => {
        end = resolve
      })
  )
  await build(async () => {})
  t.equal(pruned.length, 1, 'while another build runs in it')
  t.match(pruned[0], /prune --all --keep-storage 5000$/)
  end()
  await holder
  t.equal(pruned.length, 2)
})

test('an engine that ends while it is asked whether it is ready did not start, in whatever words that is refused', async t => {
  const made: string[] = []
  const engines = new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime: {
      list: async () => [],
      ensureBuildNetwork: async () => 'network',
      ensureVolume: async () => {},
      create: async () => {
        made.push(`container ${made.length}`)
        return made.at(-1)
      },
      start: async () => {},
      exec: async () => {
        throw new Problem(502, 'E_ENGINE_REFUSED', 'the Docker Engine refused to run docker in a container')
      },
      inspect: async () => ({ status: 'exited', exitCode: 3 }),
      tail: async () => ['no space left'],
      removeVolume: async () => {}
    } as unknown as ContainerRuntime,
    clock,
    log,
    records: { used: async () => {}, stopped: async () => {}, removed: async () => {}, live: async () => [] },
    cacheBytes: 5e9
  })
  const wanted = { projectId: 'project', program: buildkitProgram, image: 'buildkit:lab' }
  const build = { deploymentId: 'one', limits: { memoryBytes: 2 ** 30, cpus: 1 } }
  await t.rejects(
    engines.use(wanted, build, new AbortController().signal, async () => {}),
    { code: 'E_BUILD_ENGINE', message: /does not start: it ended with code 3 no space left/ }
  )
  t.equal(made.length, 2, 'it was made anew before')
})

test('a build that is ended does not wait until the former engine of its project is removed', async t => {
  let release = (): void => {}
  const emptied = new Promise<void>(resolve => {
    release = resolve
  })
  const made: string[] = []
  const engines = new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime: {
      list: async () => [],
      ensureBuildNetwork: async () => 'network',
      ensureVolume: async () => {},
      create: async () => {
        made.push(`container ${made.length}`)
        return made.at(-1)
      },
      start: async () => {},
      setCaps: async () => {},
      exec: async () => 0,
      removeVolume: async () => await emptied
    } as unknown as ContainerRuntime,
    clock,
    log,
    records: { used: async () => {}, stopped: async () => {}, removed: async () => {}, live: async () => [] },
    cacheBytes: 5e9
  })
  const wanted = { projectId: 'project', program: buildkitProgram, image: 'buildkit:lab' }
  const limits = { memoryBytes: 2 ** 30, cpus: 1 }
  const removal = engines.removeUnused('project')
  await new Promise(setImmediate)
  const cancel = new AbortController()
  const ended = engines.use(wanted, { deploymentId: 'one', limits }, cancel.signal, async () => {
    t.fail('it has been ended')
  })
  await new Promise(setImmediate)
  cancel.abort(new Error('cancelled'))
  await t.rejects(ended, { message: 'cancelled' })
  t.same(made, [])

  release()
  t.ok(await removal)
  const next = { deploymentId: 'two', limits }
  t.equal(await engines.use(wanted, next, new AbortController().signal, async () => 'built'), 'built')
  t.same(made, ['container 0'], 'for the next one alone')
})

/** Engines whose containers are only names here. */
function namedEngines(running: Map<string, string>, events: string[]): ProjectEngines {
  return new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime: {
      list: async () =>
        [...running].map(([name, status]) => ({
          id: name,
          name,
          image: 'engine:lab',
          owner: { projectId: 'project' },
          status
        })),
      ensureBuildNetwork: async () => 'network',
      ensureVolume: async () => {},
      create: async ({ name }: { readonly name: string }) => {
        running.set(name, 'running')
        return name
      },
      start: async (id: string) => void running.set(id, 'running'),
      stop: async (id: string) => {
        events.push('stopped')
        running.set(id, 'exited')
      },
      remove: async (id: string) => {
        events.push(`removed ${id}`)
        running.delete(id)
      },
      setCaps: async () => {},
      exec: async () => 0
    } as unknown as ContainerRuntime,
    clock,
    log,
    records: { used: async () => {}, stopped: async () => {}, removed: async () => {}, live: async () => [] },
    cacheBytes: 5e9
  })
}

const wantedDockerd = { projectId: 'project', program: dockerdProgram, image: 'engine:lab' }
const buildOf = (deploymentId: string) => ({ deploymentId, limits: { memoryBytes: 2 ** 30, cpus: 1 } })

test('an engine that another release has made is made anew', async t => {
  const current = containerName(wantedDockerd)
  const running = new Map([['busbar.builder.dockerd.project', 'running']])
  const events: string[] = []
  const engines = namedEngines(running, events)
  for (const id of ['one', 'two'])
    await engines.use(wantedDockerd, buildOf(id), new AbortController().signal, async () => {})
  t.same(events, ['removed busbar.builder.dockerd.project'])
  t.same([...running.keys()], [current])
})

test('an engine that may go on with a build that was ended is stopped once no other uses it', async t => {
  const running = new Map<string, string>()
  const events: string[] = []
  const engines = namedEngines(running, events)
  const { signal } = new AbortController()
  await engines.use(wantedDockerd, buildOf('one'), signal, async () => {
    await engines.use(wantedDockerd, buildOf('two'), signal, async ({ noteUnheard }) => noteUnheard())
    events.push('two has ended')
  })
  t.same(events, ['two has ended', 'stopped'])
  await engines.use(wantedDockerd, buildOf('three'), signal, async () => {})
  t.same(events, ['two has ended', 'stopped'], 'which is once')
  t.same([...running.values()], ['running'])
})

test('a build that one kind alone can build waits for those in another, and those behind it wait for it', async t => {
  const running = new Map<string, string>()
  const engines = new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime: {
      list: async () =>
        [...running].map(([id, name]) => ({
          id,
          name,
          image: 'engine:lab',
          owner: { projectId: 'project' },
          status: 'running'
        })),
      ensureBuildNetwork: async () => 'network',
      ensureVolume: async () => {},
      create: async ({ name }: { readonly name: string }) => {
        running.set(name, name)
        return name
      },
      start: async () => {},
      remove: async (id: string) => {
        running.delete(id)
      },
      setCaps: async () => {},
      exec: async () => 0
    } as unknown as ContainerRuntime,
    clock,
    log,
    records: {
      used: async () => {},
      stopped: async () => {},
      removed: async () => {},
      live: async () => []
    },
    cacheBytes: 5e9
  })
  const limits = { memoryBytes: 2 ** 30, cpus: 1 }
  const order: string[] = []
  const begin = (
    deploymentId: string,
    program: typeof buildkitProgram,
    { isOnly = false, signal = new AbortController().signal } = {}
  ) => {
    let end = (): void => {}
    const held = new Promise<void>(resolve => {
      end = resolve
    })
    const ended = engines.use(
      {
        projectId: 'project',
        program,
        image: 'engine:lab',
        ...(isOnly && {
          onWait: (current: typeof program) => void order.push(`${deploymentId} waits for ${current.kind}`)
        })
      },
      { deploymentId, limits },
      signal,
      async ({ program: actual }) => {
        order.push(`${deploymentId} in ${actual.kind}`)
        await held
      }
    )
    return { end, ended }
  }
  const reached = async (what: string): Promise<void> => {
    await until(() => order.includes(what), what, 10_000)
  }
  const first = begin('first', buildkitProgram)
  await reached('first in buildkit')
  const waiting = begin('waiting', dockerdProgram, { isOnly: true })
  await reached('waiting waits for buildkit')
  const cancelled = new AbortController()
  const given = begin('given up', buildkitProgram, { signal: cancelled.signal })
  const behind = begin('behind', buildkitProgram)
  cancelled.abort(new Error('cancelled'))
  await t.rejects(given.ended, { message: 'cancelled' }, 'who waits can be cancelled')
  first.end()
  await first.ended
  await reached('behind in dockerd')
  t.same(order, [
    'first in buildkit',
    'waiting waits for buildkit',
    'waiting in dockerd',
    'behind in dockerd'
  ])
  t.same([...running.keys()], [containerName({ projectId: 'project', program: dockerdProgram })])
  for (const { end, ended } of [waiting, behind]) {
    end()
    await ended
  }
})

test('an engine that several builds share has what all of them may take, and gives it back as each ends', async t => {
  const caps: Array<readonly [memoryBytes: number, cpus: number, processes: number]> = []
  const engines = new ProjectEngines({
    kinds: ownEngineKinds(),
    runtime: {
      list: async () => [
        {
          id: 'engine',
          name: containerName(wantedDockerd),
          image: 'engine:lab',
          owner: { projectId: 'project' },
          status: 'running'
        }
      ],
      setCaps: async (_id: string, { memoryBytes, cpus, processes }: Record<string, number>) =>
        void caps.push([memoryBytes ?? 0, cpus ?? 0, processes ?? 0]),
      exec: async () => 0
    } as unknown as ContainerRuntime,
    clock,
    log,
    records: { used: async () => {}, stopped: async () => {}, removed: async () => {}, live: async () => [] },
    cacheBytes: 5e9
  })
  const { signal } = new AbortController()
  let end = (): void => {}
  const first = engines.use(
    wantedDockerd,
    buildOf('one'),
    signal,
    async () =>
      await new Promise<void>(resolve => {
        end = resolve
      })
  )
  await until(() => caps.length > 0, 'the first build has what it may take')
  const [alone] = caps
  await engines.use(wantedDockerd, buildOf('two'), signal, async () => {
    const [memoryBytes, cpus, processes] = caps.at(-1) ?? []
    t.equal(memoryBytes, (alone?.[0] ?? 0) + 2 ** 30)
    t.equal(cpus, 2)
    t.ok((processes ?? 0) > (alone?.[2] ?? 0))
  })
  await until(() => caps.at(-1)?.[1] === 1, 'the engine has what one build may take')
  t.same(caps.at(-1), alone)
  end()
  await first
})
