import type { Events, Tx } from 'busbar/sdk'
import type { JobRunner, RecordedJob } from '../jobs/job-runner.js'

interface EventHandler {
  readonly eventId: string
  handle(data: unknown, context: { readonly signal: AbortSignal }): Promise<void>
}

/** About three hours, as each pause is e times as long as the one before. */
const attempts = 10
const timeoutMs = 5 * 60_000

const deliveryOf = (eventId: string): string => `on.${eventId}`

/** Domain events: one durable job per plugin that listens, stored in the writer's transaction. */
export class EventHub {
  readonly #subscriptions = new Map<string, ReadonlySet<string>>()

  constructor(private readonly jobs: Pick<JobRunner, 'submit'>) {}

  for(plugin: string): Events {
    return Object.freeze<Events>({
      emit: async (event, data, tx) => {
        await this.#emit(plugin, event.id, data, tx)
      }
    })
  }

  /**
   * From now on, events are stored for the plugin; returns the jobs that deliver them. A subscription
   * outlives a stop and a reload of the plugin, so that nothing that happens meanwhile is missed.
   */
  subscribe(plugin: string, handlers: readonly EventHandler[]): RecordedJob[] {
    const eventIds = new Set(handlers.map(({ eventId }) => eventId))
    this.#subscriptions.set(plugin, eventIds)
    return [...eventIds].map(
      (eventId): RecordedJob => ({
        name: deliveryOf(eventId),
        lane: 'short',
        attempts,
        timeoutMs,
        run: async (payload, { signal }) => {
          const { data } = payload as { data: unknown }
          for (const handler of handlers)
            if (handler.eventId === eventId) await handler.handle(data, { signal })
        }
      })
    )
  }

  /** The operator has turned the plugin off: what happens from now on is not meant for it. */
  unsubscribe(plugin: string): void {
    this.#subscriptions.delete(plugin)
  }

  async #emit(plugin: string, eventId: string, data: unknown, tx: Tx): Promise<void> {
    if (!eventId.startsWith(`${plugin}.`)) {
      throw new Error(
        `the plugin "${plugin}" may not emit "${eventId}": only the plugin named before the dot may`
      )
    }
    const listeners = [...this.#subscriptions].filter(([, events]) => events.has(eventId))
    if (listeners.length === 0) return
    await this.jobs.submit(
      listeners.map(([listener]) => ({
        plugin: listener,
        name: deliveryOf(eventId),
        payload: { data },
        attempts
      })),
      tx
    )
  }
}
