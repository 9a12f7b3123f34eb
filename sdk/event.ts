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

export type EventDeclarer<Self> = <T>(
  event: DomainEvent<T>,
  handler: (data: T, self: Self, context: { readonly signal: AbortSignal }) => void | Promise<void>
) => void
