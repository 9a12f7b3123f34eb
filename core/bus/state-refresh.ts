import { hasState, PluginStates, type StateParts } from './plugin-states.js'
import type { Topic } from './topic.js'

/**
 * Tells subscribers of this process how things are where messages about them may have been lost, or have come in another order
 * than things have happened. See `ChannelSpec.current`. Plugins do not wait for each other.
 */
export class StateRefresh {
  readonly #end = new AbortController()
  readonly #plugins = new Map<string, PluginStates>()

  constructor(private readonly parts: StateParts) {}

  /** Messages about anything may be lost. */
  all(): void {
    const plugins = new Set(
      this.parts.topics.list().flatMap(({ record }) => (hasState(record) ? [record.plugin] : []))
    )
    for (const plugin of plugins) this.of(plugin)
  }

  /** Messages of this plugin may be. */
  of(plugin: string): void {
    this.#statesOf(plugin).look()
  }

  /** What was told last may be older than what was told before. */
  ofTopic(topic: Topic): void {
    if (topic.record !== undefined) this.#statesOf(topic.record.plugin).look(topic)
  }

  async close(): Promise<void> {
    this.#end.abort(new Error('the bus is closing'))
    await Promise.all([...this.#plugins.values()].map(async states => await states.idle()))
  }

  #statesOf(plugin: string): PluginStates {
    const known = this.#plugins.get(plugin)
    if (known !== undefined) return known
    const states = new PluginStates(plugin, this.parts, this.#end.signal)
    this.#plugins.set(plugin, states)
    return states
  }
}
