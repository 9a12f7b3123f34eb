import { access, extensionPoint, type Log, service } from 'busbar/sdk'
import { test } from 'tap'
import type { PluginRecords } from '../../core/declarations/records.js'
import { currentPlugin } from '../../core/frames/frames.js'
import { Attachment, type PluginRegistries } from '../../core/plugins/attachment.js'
import type { PluginRun } from '../../core/plugins/plugin-run.js'
import { RunningKinds } from '../../core/resources/running-kinds.js'
import { ServiceRegistry } from '../../core/services/registry.js'

interface Clocks {
  time(): string
}
const clocks = service<Clocks>('demo.clocks')
const hands = extensionPoint<string>('clocks.hands')

type Provides = (provide: (service: unknown, implementation: unknown) => void) => void
type Contributes = (contribute: (point: unknown, key: unknown, value: unknown) => void) => void

interface Version {
  readonly builtIn?: boolean
  readonly records?: Partial<PluginRecords>
  readonly provides?: Provides
  readonly contributes?: Contributes
  readonly implements?: Readonly<Record<string, string>>
}

interface Singleton {
  readonly name: string
  readonly signal: AbortSignal
  run(stop: AbortSignal): Promise<void>
}

/** The registries of a platform; those of jobs, channels and the like note what they are told. */
function platform({ worksJobs = true } = {}) {
  const told: string[] = []
  const singletons: Singleton[] = []
  let failing: string | undefined
  let ends: Promise<void> = Promise.resolve()
  const note = (what: string): void => {
    told.push(what)
    if (what === failing) {
      failing = undefined
      throw new Error(`${what} failed`)
    }
  }
  const registry = new ServiceRegistry()
  const kinds = new RunningKinds()
  const registries = {
    registry,
    kinds,
    worksJobs,
    log: {} as Log,
    hub: {
      addChannels: () => note('channels'),
      removeChannels: () => note('no channels')
    },
    events: { declare: () => {}, subscribe: () => [{ name: 'event' }] },
    jobs: {
      add: async (_: string, jobs: ReadonlyArray<{ name: string }>, { isLimited }: { isLimited: boolean }) =>
        note(`jobs ${jobs.map(({ name }) => name).join()}${isLimited ? ' limited' : ''}`),
      remove: async () => note('no jobs'),
      retire: async () => note('jobs end')
    },
    schedules: { add: async () => note('schedules'), remove: () => note('no schedules') },
    removals: { jobsOf: () => [{ name: 'removal' }], resume: async () => note('removals') },
    singletons: {
      run: async (singleton: Singleton) => {
        singletons.push(singleton)
        await ends
      }
    }
  } as unknown as PluginRegistries
  return {
    registry,
    kinds,
    told,
    singletons,
    failOn(what: string): void {
      failing = what
    },
    /** A singleton ends when this does. */
    endsWith(end: Promise<void>): void {
      ends = end
    },
    attachment(version: Version = {}, run: object = {}): Attachment {
      return new Attachment(
        Object.assign(run, {
          id: 'demo',
          self: version,
          signal: new AbortController().signal,
          records: {
            resources: [],
            channels: [],
            events: [],
            notifications: [],
            notificationHandlers: [],
            jobs: [],
            schedules: [],
            singletons: [],
            ...version.records
          },
          options: {
            definition: { provides: version.provides, contributes: version.contributes },
            manifest: { implements: version.implements ?? {} },
            container: { builtIn: version.builtIn ?? false }
          }
        }) as unknown as PluginRun,
        registries
      )
    }
  }
}

const job = (name: string) => ({ name }) as unknown as PluginRecords['jobs'][number]
const singleton = (name: string, run: PluginRecords['singletons'][number]['run']) => ({ name, run })
const providing =
  (time: string): Provides =>
  provide =>
    provide(clocks, { time: () => time })

const timeOf = ({ registry }: { readonly registry: ServiceRegistry }): string =>
  (registry.handle('demo.clocks') as Clocks).time()

test('a run is registered in everything that calls it, and in nothing any more once it is detached', async t => {
  const all = platform()
  const attachment = all.attachment({
    provides: providing('one'),
    contributes: contribute => contribute(hands, 'hour', 'short'),
    records: {
      jobs: [job('work')],
      resources: [{ kind: 'clock' }] as unknown as PluginRecords['resources']
    }
  })
  await attachment.attach(undefined)
  t.same(all.told.splice(0), ['channels', 'jobs work,event,removal limited', 'schedules', 'removals'])
  t.equal(timeOf(all), 'one')
  t.same(all.registry.contributions(hands).keys(), ['hour'])
  t.match(all.kinds.all(), [{ record: { kind: 'clock' } }])
  await attachment.detach(false)
  t.same(all.told, ['no jobs', 'no channels', 'no schedules'])
  t.throws(() => timeOf(all), { code: 'E_PLUGIN_OFF' })
  t.same(all.registry.contributions(hands).keys(), [])
  t.same(all.kinds.all(), [])
})

test('the jobs of a plugin that a newer run has replaced come to their end, and its place is taken', async t => {
  const all = platform()
  const [old, anew] = [
    all.attachment({ provides: providing('old') }),
    all.attachment({ builtIn: true, provides: providing('new') })
  ]
  await old.attach(undefined)
  await anew.attach(old)
  t.equal(all.told[5], 'jobs event,removal', 'a built-in plugin may use all workers')
  all.told.length = 0
  await old.detach(true)
  t.same(all.told, ['jobs end'])
  t.equal(timeOf(all), 'new')
})

test('a run whose registration fails at any place is in none of them, and its singletons do not begin', async t => {
  for (const place of ['channels', 'jobs event,removal limited', 'schedules', 'removals']) {
    const all = platform()
    all.failOn(place)
    const attachment = all.attachment({
      provides: providing('one'),
      records: { singletons: [singleton('loop', async () => {})] }
    })
    await t.rejects(attachment.attach(undefined), { message: `${place} failed` })
    t.same(all.told.slice(-3), ['no jobs', 'no channels', 'no schedules'], place)
    t.throws(() => timeOf(all), { code: 'E_PLUGIN_OFF' }, place)
    t.same(all.singletons, [], place)
  }
})

test('the run that was to be replaced goes on in all of them when the newer one cannot be registered', async t => {
  const all = platform()
  const old = all.attachment({ provides: providing('old'), records: { jobs: [job('old')] } })
  await old.attach(undefined)
  const anew = all.attachment({
    provides: providing('new'),
    contributes: contribute => contribute(hands, 'hour', 'new'),
    records: { jobs: [job('new')] }
  })
  all.told.length = 0
  all.failOn('schedules')
  await t.rejects(anew.attach(old), { message: 'schedules failed' })
  t.same(all.told, [
    'channels',
    'jobs new,event,removal limited',
    'schedules',
    'channels',
    'jobs old,event,removal limited',
    'schedules',
    'removals'
  ])
  t.equal(timeOf(all), 'old')
  t.same(all.registry.contributions(hands).keys(), [], 'what the newer one gave is taken back')
})

test('singletons run in the name of their plugin, and only where jobs are worked', async t => {
  const frames: unknown[] = []
  const records = {
    singletons: [
      singleton('loop', async ({ signal }) => {
        frames.push([currentPlugin(), signal.aborted])
      })
    ]
  }
  const all = platform()
  await all.attachment({ records }).attach(undefined)
  t.same(
    all.singletons.map(({ name }) => name),
    ['demo.loop']
  )
  await all.singletons[0]?.run(new AbortController().signal)
  t.same(frames, [['demo', false]])
  const serving = platform({ worksJobs: false })
  await serving.attachment({ records }).attach(undefined)
  t.same(serving.singletons, [])
  t.same(serving.told[1], 'jobs event,removal limited', 'it enqueues jobs all the same')
})

test('a plugin is turned off when its singletons have been told to stop and have ended', async t => {
  const all = platform()
  let end = (): void => {}
  all.endsWith(
    new Promise<void>(resolve => {
      end = resolve
    })
  )
  const attachment = all.attachment({
    provides: providing('one'),
    records: { singletons: [singleton('loop', async () => {})] }
  })
  await attachment.attach(undefined)
  const [loop] = all.singletons
  t.equal(loop?.signal.aborted, false)
  all.told.length = 0
  const detached = attachment.detach(false)
  t.match(loop?.signal.reason, { status: 503, code: 'E_PLUGIN_STOPPING' })
  await new Promise(resolve => setImmediate(resolve))
  t.same(all.told, [], 'it still works')
  t.equal(timeOf(all), 'one')
  end()
  await detached
  t.same(all.told, ['no jobs', 'no channels', 'no schedules'])
})

test('a plugin provides services under its own name and those of its contracts', async t => {
  const all = platform()
  const other = service<Clocks>('towers.clocks')
  const provides: Provides = provide => provide(other, { time: () => 'tower' })
  await t.rejects(all.attachment({ provides }).attach(undefined), {
    message: '"demo" provides "towers.clocks"; its services begin with "demo."'
  })
  await all.attachment({ provides, implements: { towers: '1.0.0' } }).attach(undefined)
  t.equal((all.registry.handle('towers.clocks') as Clocks).time(), 'tower')
  await t.rejects(
    all.attachment({ provides: provide => provide({ id: 'demoted.clocks' }, {}) }).attach(undefined),
    { message: /its services begin with "demo\."/ }
  )
})

test('what is no service, no object, no extension point or no key is refused with what it was', async t => {
  const all = platform()
  for (const provides of [
    (provide => provide(undefined, {})) as Provides,
    (provide => provide({ id: 1 }, {})) as Provides,
    (provide => provide(clocks, null)) as Provides,
    (provide => provide(clocks, () => 1)) as Provides
  ])
    await t.rejects(all.attachment({ provides }).attach(undefined), { message: /^provides: it gives/ })
  for (const contributes of [
    (contribute => contribute(undefined, 'hour', 1)) as Contributes,
    (contribute => contribute({ id: 1 }, 'hour', 1)) as Contributes,
    (contribute => contribute(hands, 1, 1)) as Contributes
  ])
    await t.rejects(all.attachment({ contributes }).attach(undefined), {
      message: /^contributes: it gives/
    })
})

test('only built-in plugins tell who a caller is and who may enter a project', async t => {
  for (const point of [access.credentials, access.projects]) {
    const all = platform()
    const contributes: Contributes = contribute => contribute(point, 'own', {})
    await t.rejects(all.attachment({ contributes }).attach(undefined), {
      message: `"demo" contributes to "${point.id}", which is not for third-party plugins`
    })
    t.same(all.registry.contributions(point as never).keys(), [])
    await all.attachment({ contributes, builtIn: true }).attach(undefined)
    t.same(all.registry.contributions(point as never).keys(), ['own'])
  }
})
