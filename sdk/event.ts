import type { RaisedNotification } from './notification.js'

declare const carried: unique symbol

/**
 * A domain event: a fact that has been committed.
 *
 * It is enqueued in the writer's transaction and delivered at least once, in no promised order, to every
 * plugin that listens. A handler is idempotent and reads current state. Events never veto: a decision
 * is an extension point. The id is `<plugin>.<camelCase>`; the data is plain JSON.
 */
export interface DomainEvent<T> {
  readonly kind: 'event'
  readonly id: string
  readonly [carried]?: T
}

export const event = <T>(id: string): DomainEvent<T> => Object.freeze({ kind: 'event', id })

/** The signal aborts on time-out, when the plugin stops and when the process shuts down. */
interface EventContext {
  readonly signal: AbortSignal
}

export interface EventDeclarer<Self> {
  <T>(
    event: DomainEvent<T>,
    handler: (data: T, self: Self, context: EventContext) => void | Promise<void>
  ): void
  /**
   * Listens to all notifications that plugins declare (`notifications`), once: for who keeps them, or sends them on. They come
   * as events do: at least once, with the same `id` each time, in no promised order.
   */
  notification(
    handler: (raised: RaisedNotification, self: Self, context: EventContext) => void | Promise<void>
  ): void
}
