import type { Clock, DomainEvent, Events, Log, NotificationKind, RaisedNotification, Tx } from 'busbar/sdk'
import { kindsOf } from '../declarations/notification-kinds.js'
import type { NotificationRecord } from '../declarations/records.js'
import { faultOf } from '../frames/fault.js'
import type { JobRunner, RecordedJob } from '../jobs/job-runner.js'
import { raisedBy } from './raised.js'

interface Context {
  readonly signal: AbortSignal
}
interface EventHandler {
  readonly eventId: string
  handle(data: unknown, context: Context): Promise<void>
}
type NotificationListener = (raised: RaisedNotification, context: Context) => Promise<void>

/** What a plugin listens to. */
interface Subscription {
  readonly events: ReadonlySet<string>
  /** Whether the notifications of all plugins are stored for it. */
  readonly hearsNotifications: boolean
}

interface EventHubParts {
  readonly jobs: Pick<JobRunner, 'submit'>
  readonly clock: Pick<Clock, 'now'>
  readonly log: Pick<Log, 'warn'>
}

/** About three hours, as each pause is e times as long as the one before. */
const attempts = 10
const timeoutMs = 5 * 60_000
/** Each is logged once; a plugin may make ever new ones. */
const mostFaults = 100

const deliveryOf = (eventId: string): string => `on.${eventId}`
/** No event is called so: the ids of events have a dot. */
const notificationDelivery = deliveryOf('notification')

/**
 * Domain events: one durable job per plugin that listens, stored in the writer's transaction. Those that are declared to be
 * notifications are filled in at that moment, and stored so for each plugin that listens to notifications.
 */
export class EventHub {
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #notifications = new Map<string, readonly NotificationRecord[]>()
  readonly #faults = new Set<string>()

  constructor(private readonly parts: EventHubParts) {}

  /** What was wrong with events that are notifications, each once. */
  get notificationFaults(): readonly string[] {
    return [...this.#faults]
  }

  for(plugin: string): Events {
    return Object.freeze<Events>({
      emit: async (event, data, tx) => {
        await this.#emit(plugin, event, [data], tx)
      },
      emitEach: async (event, facts, tx) => {
        await this.#emit(plugin, event, facts, tx)
      }
    })
  }

  /**
   * From now on, events are stored for the plugin; returns the jobs that deliver them. A subscription
   * outlives a stop and a reload of the plugin, so that nothing that happens meanwhile is missed.
   */
  subscribe(
    plugin: string,
    handlers: readonly EventHandler[],
    listeners: readonly NotificationListener[] = []
  ): RecordedJob[] {
    const events = new Set(handlers.map(({ eventId }) => eventId))
    const hearsNotifications = listeners.length > 0
    this.#subscriptions.set(plugin, { events, hearsNotifications })
    return [
      ...[...events].map(eventId =>
        delivery(deliveryOf(eventId), async (payload, context) => {
          const { data } = payload as { data: unknown }
          for (const handler of handlers) if (handler.eventId === eventId) await handler.handle(data, context)
        })
      ),
      ...(hearsNotifications
        ? [
            delivery(notificationDelivery, async (payload, context) => {
              const { raised } = payload as {
                raised: Omit<RaisedNotification, 'occurredAt'> & { occurredAt: string }
              }
              const told = Object.freeze({ ...raised, occurredAt: new Date(raised.occurredAt) })
              for (const listen of listeners) await listen(told, context)
            })
          ]
        : [])
    ]
  }

  /** From now on, these events of the plugin are notifications too, as long as it is not turned off. */
  declare(plugin: string, notifications: readonly NotificationRecord[]): void {
    this.#notifications.set(plugin, notifications)
  }

  /** The operator has turned the plugin off: what happens from now on is not meant for it. */
  unsubscribe(plugin: string): void {
    this.#subscriptions.delete(plugin)
    this.#notifications.delete(plugin)
  }

  notificationKinds(): readonly NotificationKind[] {
    return kindsOf([...this.#notifications.values()].flat())
  }

  async #emit<T>(
    plugin: string,
    { id: eventId }: DomainEvent<T>,
    facts: readonly T[],
    tx: Tx
  ): Promise<void> {
    if (!eventId.startsWith(`${plugin}.`)) {
      throw new Error(
        `the plugin "${plugin}" may not emit "${eventId}": only the plugin named before the dot may`
      )
    }
    const subscriptions = [...this.#subscriptions]
    const listeners = subscriptions.filter(([, { events }]) => events.has(eventId))
    const hearers = subscriptions.filter(([, { hearsNotifications }]) => hearsNotifications)
    const raised = hearers.length === 0 ? [] : facts.flatMap(data => this.#raise(plugin, eventId, data))
    await this.parts.jobs.submit(
      [
        ...facts.flatMap(data =>
          listeners.map(([listener]) => submission(listener, deliveryOf(eventId), { data }))
        ),
        ...raised.flatMap(one =>
          hearers.map(([hearer]) => submission(hearer, notificationDelivery, { raised: one }))
        )
      ],
      tx
    )
  }

  /** A fact is committed whether or not it can be told of. */
  #raise(plugin: string, eventId: string, data: unknown): RaisedNotification[] {
    const records = this.#notifications.get(plugin)?.filter(record => record.eventId === eventId) ?? []
    if (records.length === 0) return []
    const onFault = (fault: string): void => {
      this.#note(plugin, fault)
    }
    try {
      return raisedBy(records, data, { at: this.parts.clock.now(), onFault })
    } catch (error) {
      onFault(`the event ${eventId} could not be read: ${faultOf(error, plugin).message}`)
      return []
    }
  }

  #note(plugin: string, fault: string): void {
    if (this.#faults.has(fault) || this.#faults.size >= mostFaults) return
    this.#faults.add(fault)
    this.parts.log.warn({ plugin }, fault)
  }
}

const delivery = (name: string, run: RecordedJob['run']): RecordedJob => ({
  name,
  lane: 'short',
  attempts,
  timeoutMs,
  run
})

const submission = (plugin: string, name: string, payload: object) => ({ plugin, name, payload, attempts })
