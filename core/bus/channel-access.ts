import type { Log, SignedInCaller } from 'busbar/sdk'
import type { ChannelRecord, ChannelTable } from './channel-table.js'

/** Asked at each subscribe. What throws is a refusal. */
export type Authorize = (
  channel: ChannelRecord,
  id: string | undefined,
  caller: SignedInCaller
) => Promise<boolean>

/** Who may hear which channel. */
export class ChannelAccess {
  #changes = 0

  constructor(
    private readonly channels: ChannelTable,
    private readonly authorize: Authorize,
    private readonly log: Log
  ) {}

  /** The facts have changed: an answer that is under way is asked for again. */
  factsChanged(): void {
    this.#changes++
  }

  /** Undefined when it cannot be decided now; never throws. */
  async isGranted(name: string, caller: SignedInCaller): Promise<boolean | undefined> {
    // Asked again when the plugin was reloaded or the facts have changed meanwhile: only what is current counts.
    for (let found = this.channels.find(name); found !== undefined; ) {
      const before = this.#changes
      try {
        if (!(await this.authorize(found.record, found.id, caller))) return false
      } catch (error) {
        this.log.error(
          { err: error, plugin: found.record.plugin, channel: name },
          'access to a channel could not be decided'
        )
        return undefined
      }
      const now = this.channels.find(name)
      if (now?.record === found.record && before === this.#changes) return true
      found = now
    }
    return false
  }
}
