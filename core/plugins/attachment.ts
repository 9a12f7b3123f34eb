import { access, type Log, Problem, updateState } from 'busbar/sdk'
import type { Hub } from '../bus/hub.js'
import type { EventHub } from '../events/events.js'
import { callPlugin, shown } from '../frames/fault.js'
import { framed } from '../frames/framed.js'
import { inFrame, signalInFrame } from '../frames/frames.js'
import type { JobRunner, RecordedJob } from '../jobs/job-runner.js'
import type { Singletons } from '../jobs/singleton.js'
import type { ResourceRemovals } from '../resources/resource-removals.js'
import type { RunningKinds } from '../resources/running-kinds.js'
import { jobOf, type RecordedSchedule } from '../schedules/recorded-schedule.js'
import type { Scheduler } from '../schedules/scheduler.js'
import type { ServiceRegistry } from '../services/registry.js'
import type { PluginRun } from './plugin-run.js'
import { schemaOf } from './plugin-schema.js'

export interface PluginRegistries {
  readonly registry: ServiceRegistry
  readonly hub: Hub
  readonly jobs: JobRunner
  readonly events: EventHub
  readonly singletons: Singletons
  readonly schedules: Scheduler
  readonly kinds: RunningKinds
  readonly removals: ResourceRemovals
  readonly log: Log
  /** False in a process that only serves the API. */
  readonly worksJobs: boolean
}

/** The guard, or everybody, believes what is contributed here. */
const builtInPoints: ReadonlySet<string> = new Set([
  access.credentials.id,
  access.projects.id,
  updateState.id
])

/**
 * Registers a started run with everything that calls it besides HTTP: services, extension points, channels,
 * jobs, events, singletons; and unregisters it again. A newer run of the same plugin takes the place of the
 * older one in each of them.
 */
export class Attachment {
  readonly #singletons = new AbortController()
  #ended: Promise<unknown> = Promise.resolve()

  constructor(
    readonly run: PluginRun,
    readonly registries: PluginRegistries
  ) {}

  async attach(replaced: Attachment | undefined): Promise<void> {
    try {
      await this.#register()
    } catch (error) {
      this.#withdraw()
      // The run that was to be replaced goes on in all of them, with its own rules.
      if (replaced === undefined) await this.#unregister()
      else await replaced.#register()
      throw error
    }
    this.#runSingletons()
  }

  async #register(): Promise<void> {
    const {
      run: { records, self, id },
      registries
    } = this
    this.#publish()
    registries.hub.addChannels(
      id,
      records.channels.map(record => ({
        ...record,
        source:
          record.source === undefined
            ? undefined
            : context =>
                callPlugin(id, () =>
                  record.source?.({ ...context, signal: signalInFrame(id, context.signal) }, self)
                ),
        current: record.current && {
          event: record.current.event,
          read: async (ids: readonly string[]) =>
            await callPlugin(id, async () => (await record.current?.read(ids, self)) ?? new Map())
        }
      }))
    )
    registries.events.declare(id, records.notifications)
    const subscriptions = registries.events.subscribe(
      id,
      records.events.map(record => ({
        eventId: record.eventId,
        handle: async (data, context) => {
          await callPlugin(id, async () => {
            await record.handle(data, self, { ...context, signal: signalInFrame(id, context.signal) })
          })
        }
      })),
      records.notificationHandlers.map(handle => async (raised, context) => {
        await callPlugin(id, async () => {
          await handle(raised, self, { ...context, signal: signalInFrame(id, context.signal) })
        })
      })
    )
    const jobs = records.jobs.map(
      (record): RecordedJob => ({
        ...record,
        run: async (payload, context) => {
          await callPlugin(id, async () => {
            await record.run(payload, { ...context, signal: signalInFrame(id, context.signal) }, self)
          })
        }
      })
    )
    const schedules = records.schedules.map(
      (record): RecordedSchedule => ({
        ...record,
        run: async context => {
          await callPlugin(id, async () => {
            await record.run({ ...context, signal: signalInFrame(id, context.signal) }, self)
          })
        }
      })
    )
    const removals = registries.removals.jobsOf(id, records.resources)
    // A process that runs no jobs knows them all the same: it enqueues them.
    await registries.jobs.add(id, [...jobs, ...subscriptions, ...schedules.map(jobOf), ...removals], {
      isLimited:
        !this.run.options.container.builtIn || jobs.some(({ waitsForTenants }) => waitsForTenants === true)
    })
    await registries.schedules.add(id, schedules)
    await registries.removals.resume(id)
  }

  #runSingletons(): void {
    const {
      run: { records, self, id, signal },
      registries
    } = this
    if (!registries.worksJobs) return
    this.#ended = Promise.all(
      records.singletons.map(async ({ name, run: work }) => {
        await registries.singletons.run({
          name: `${id}.${name}`,
          run: async stop => {
            await callPlugin(id, async () => {
              await work({ signal: signalInFrame(id, stop) }, self)
            })
          },
          signal: AbortSignal.any([this.#singletons.signal, signal]),
          log: registries.log
        })
      })
    )
  }

  /** Puts its services, contributions and kinds of resources in place of those of an earlier version. */
  #publish(): void {
    const {
      run: {
        id,
        self,
        options: {
          definition,
          manifest,
          container: { builtIn }
        }
      },
      run,
      registries: { registry, kinds }
    } = this
    const own = [id, ...Object.keys(manifest.implements)]
    const giver = { plugin: id, run: this }
    const schema = schemaOf(id, builtIn)
    kinds.add(
      this,
      run.records.resources.map(record => ({ record, schema, self }))
    )
    const provided: string[] = []
    inFrame(id, () => {
      definition.provides?.((service, implementation) => {
        if (typeof service?.id !== 'string' || typeof implementation !== 'object' || implementation === null)
          throw new Error(
            `provides: it gives ${shown(implementation)} for ${shown(service)}; it takes a key made by service('${id}.…') and an object of methods`
          )
        if (!own.some(prefix => service.id.startsWith(`${prefix}.`)))
          throw new Error(
            `"${id}" provides "${service.id}"; its services begin with ${own.map(prefix => `"${prefix}."`).join(' or ')}`
          )
        registry.provide(giver, service, builtIn ? implementation : framed(id, implementation))
        provided.push(service.id)
      }, self)
      for (const contract of Object.keys(manifest.implements))
        if (!provided.some(service => service.startsWith(`${contract}.`)))
          throw new Error(`"${id}" implements "${contract}" and provides none of its services`)
      definition.contributes?.((point, key, value) => {
        if (typeof point?.id !== 'string' || typeof key !== 'string')
          throw new Error(
            `contributes: it gives ${shown(key)} to ${shown(point)}; it takes an extension point, a key and a value`
          )
        if (!builtIn && builtInPoints.has(point.id))
          throw new Error(`"${id}" contributes to "${point.id}", which is not for third-party plugins`)
        registry.contribute(giver, point, key, builtIn ? value : framed(id, value))
      }, self)
    })
  }

  #withdraw(): void {
    this.registries.registry.withdraw(this)
    this.registries.kinds.withdraw(this)
  }

  /** Stops its background work. Its services answer 503 from now on unless a newer run has taken over. */
  async detach(isReplaced: boolean): Promise<void> {
    const { run, registries } = this
    this.#singletons.abort(
      new Problem(503, 'E_PLUGIN_STOPPING', `the plugin "${run.id}" is being turned off`)
    )
    await this.#ended
    if (isReplaced) await registries.jobs.retire(run.id)
    else await this.#unregister()
    this.#withdraw()
  }

  async #unregister(): Promise<void> {
    await this.registries.jobs.remove(this.run.id)
    this.registries.hub.removeChannels(this.run.id)
    this.registries.schedules.remove(this.run.id)
  }
}
