import type { Static, TSchema } from '@sinclair/typebox'
import type { ChannelDeclarer, SocketDeclarer } from './channel.js'
import type { EventDeclarer } from './event.js'
import type { JobDeclarer, SingletonDeclarer } from './job.js'
import type { Log } from './kernel.js'
import type { Migration } from './migration.js'
import type { NotificationDeclarer } from './notification.js'
import type { ResourceDeclarer } from './resource.js'
import type { RouteDeclarer } from './route.js'
import type { ScheduleDeclarer } from './schedule.js'
import type { ExtensionPoint, Needs, Resolved, Service } from './service.js'

/** What `start` is given. */
export interface StartContext<N extends Needs, C> {
  /** The services, optional services and extension points named in `needs`. */
  readonly use: Resolved<N>
  /** The plugin's settings, checked against `config` and with its defaults. */
  readonly config: C
  readonly log: Log
  /** Aborts when the plugin is to stop. */
  readonly signal: AbortSignal
  /** Runs when the plugin stops, last registered first; 10 s for all of them. After that the kernel's services answer E_PLUGIN_OFF. */
  onStop(run: () => void | Promise<void>): void
}

/** Gives a service of this plugin, or of a contract that it implements, to others: all that the key's type names, or it does not compile. */
export type ServiceBinder = <T extends object>(service: Service<T>, implementation: NoInfer<T>) => void
/** Contributes `value` under one of the point's keys, which no other plugin has taken; throws when one has. */
export type Contributor = <T, K extends string>(
  point: ExtensionPoint<T, K>,
  key: NoInfer<K>,
  value: NoInfer<T>
) => void

/** `degraded` is shown to the operator with its reason; the plugin keeps running. */
export type Health = { readonly status: 'ok' } | { readonly status: 'degraded'; readonly reason: string }

/**
 * A plugin: the table of contents of a feature. The kernel reads it, replays its declarations into an
 * HTTP instance of its own, and calls `start`; there is nothing to register by hand.
 *
 * What `start` returns is `Self`: the plugin's own object, passed to every handler, job and channel.
 *
 * All of it runs in the plugin's name, and so do the callbacks it leaves behind: timers, promises, listeners of
 * signals, and the servers it opens. An error that none of them catches is logged, makes the plugin `degraded`, and
 * ends the connection for which it was thrown; the platform runs on.
 */
export interface PluginDefinition<N extends Needs, C extends TSchema, Self extends object> {
  /** The id in `plugin.json`. */
  readonly id: string
  readonly needs?: N
  /** Settings an operator may give, as a schema with defaults. */
  readonly config?: C
  readonly migrations?: readonly Migration[]
  readonly start?: (context: StartContext<N, Static<C>>) => Self | Promise<Self>
  /** Services of this plugin's own, by keys from its `api.ts`, and of the contracts that it implements. */
  readonly provides?: (provide: ServiceBinder, self: Self) => void
  /** Contributions to extension points, its own or others'. */
  readonly contributes?: (contribute: Contributor, self: Self) => void
  /** Kinds of things that it keeps for users. */
  readonly resources?: (resource: ResourceDeclarer<Self>) => void
  readonly routes?: (route: RouteDeclarer<Self>) => void
  readonly channels?: (channel: ChannelDeclarer<Self>) => void
  readonly sockets?: (socket: SocketDeclarer<Self>) => void
  readonly jobs?: (job: JobDeclarer<Self>) => void
  readonly singletons?: (singleton: SingletonDeclarer<Self>) => void
  readonly schedules?: (schedule: ScheduleDeclarer<Self>) => void
  readonly events?: (on: EventDeclarer<Self>) => void
  /** Which of its events are notifications, for whom and in which words. */
  readonly notifications?: (notification: NotificationDeclarer) => void
  readonly health?: (self: Self) => Health | Promise<Health>
}

/** A definition of whatever needs, settings and self: what the kernel loads. */
// biome-ignore lint/suspicious/noExplicitAny: its parameters are invariant, so nothing else says "of any"
export type AnyPlugin = PluginDefinition<any, any, any>

const mark: unique symbol = Symbol.for('busbar.plugin')

/** Declares a plugin. The identity function with a type: everything is inferred from the literal. */
export function definePlugin<
  const N extends Needs = {},
  C extends TSchema = TSchema,
  Self extends object = {}
>(definition: PluginDefinition<N, C, Self>): PluginDefinition<N, C, Self> {
  return Object.freeze({ ...definition, [mark]: true })
}

export const isPlugin = (value: unknown): value is AnyPlugin =>
  typeof value === 'object' && value !== null && mark in value
