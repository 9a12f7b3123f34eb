import { access, Problem, type Log } from 'busbar/sdk'
import type { Hub } from '../bus/hub.js'
import type { EventHub } from '../events/events.js'
import type { JobRunner, RecordedJob } from '../jobs/job-runner.js'
import type { Singletons } from '../jobs/singleton.js'
import type { ServiceRegistry } from '../services/registry.js'
import { inFrame } from './frames.js'
import type { PluginRun } from './plugin-run.js'

export interface Sockets {
  readonly registry: ServiceRegistry
  readonly hub: Hub
  readonly jobs: JobRunner
  readonly events: EventHub
  readonly singletons: Singletons
  readonly log: Log
  /** False in a process that only serves the API. */
  readonly worksJobs: boolean
}

/** The guard believes what is contributed here. */
const builtInPoints: ReadonlySet<string> = new Set([access.credentials.id, access.projects.id])

/**
 * Plugs a started run into everything that calls it besides HTTP: services, extension points, channels,
 * jobs, events, singletons; and unplugs it again. A newer run of the same plugin takes the place of the
 * older one in each of them.
 */
export class Attachment {
  readonly #given = new Set<unknown>()
  readonly #singletons = new AbortController()
  #ended: Promise<unknown> = Promise.resolve()

  constructor (readonly run: PluginRun, readonly to: Sockets) {}

  async attach (replaced: Attachment | undefined): Promise<void> {
    const { run: { records, self, id, signal }, to } = this
    try {
      this.publish()
      to.hub.addChannels(id, records.channels.map(record => ({
        ...record,
        source: record.source === undefined ? undefined : context => inFrame(id, () => record.source?.(context, self))
      })))
    } catch (error) {
      this.#withdraw()
      replaced?.publish()
      throw error
    }
    const subscriptions = to.events.subscribe(id, records.events.map(record => ({
      eventId: record.eventId,
      handle: async (data, context) => { await inFrame(id, async () => { await record.handle(data, self, context) }) }
    })))
    const jobs = records.jobs.map((record): RecordedJob => ({
      ...record,
      run: async (payload, context) => { await inFrame(id, async () => { await record.run(payload, context, self) }) }
    }))
    // A process that runs no jobs knows them all the same: it enqueues them.
    await to.jobs.add(id, [...jobs, ...subscriptions])
    if (!to.worksJobs) return
    this.#ended = Promise.all(records.singletons.map(async ({ name, run: work }) => {
      await to.singletons.run({
        name: `${id}.${name}`,
        run: async stop => { await inFrame(id, async () => { await work({ signal: stop }, self) }) },
        signal: AbortSignal.any([this.#singletons.signal, signal]),
        log: to.log
      })
    }))
  }

  /** Puts its services and contributions in place of those of an earlier version. */
  publish (): void {
    const { run: { id, self, options: { definition, container: { builtIn } } }, to: { registry } } = this
    const own = `${id}.`
    definition.provides?.((service, implementation) => {
      if (!service.id.startsWith(own)) throw new Error(`"${id}" provides "${service.id}"; its services begin with "${own}"`)
      this.#given.add(implementation)
      registry.provide(id, service, implementation)
    }, self)
    definition.contributes?.((point, key, value) => {
      if (!builtIn && builtInPoints.has(point.id)) throw new Error(`"${id}" contributes to "${point.id}", which is not for third-party plugins`)
      this.#given.add(value)
      registry.contribute(id, point, key, value)
    }, self)
  }

  #withdraw (): void {
    this.to.registry.withdraw(this.run.id, this.#given)
  }

  /** Stops its background work. Its services answer 503 from now on unless a newer run has taken over. */
  async detach (isReplaced: boolean): Promise<void> {
    const { run, to } = this
    this.#singletons.abort(new Problem(503, 'E_PLUGIN_STOPPING', `the plugin "${run.id}" is being turned off`))
    await this.#ended
    if (isReplaced) await to.jobs.retire(run.id)
    else {
      await to.jobs.remove(run.id)
      to.hub.removeChannels(run.id)
    }
    this.#withdraw()
  }
}
