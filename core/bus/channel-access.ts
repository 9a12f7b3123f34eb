import type { Log, SignedInCaller } from 'busbar/sdk'
import type { ChannelRecord, ChannelTable } from './channel-table.js'

export interface Verdict {
  readonly isGranted: boolean
  /** That of the channel, when it is granted; undefined where none is concerned. */
  readonly project: string | undefined
}

/** Access to channels. What throws cannot be decided now. */
export interface Authority {
  /** Asked at each subscribe. */
  decide(channel: ChannelRecord, id: string | undefined, caller: SignedInCaller): Promise<Verdict>
  /** The same for all channels of a declaration that are known to lie in one project. */
  decideIn(channel: ChannelRecord, project: string, caller: SignedInCaller): Promise<boolean>
}

const refused: Verdict = Object.freeze({ isGranted: false, project: undefined })

/** Who may subscribe to which channel. Its answers are undefined when it cannot be decided now; none throws. */
export class ChannelAccess {
  #changes = 0

  constructor(
    private readonly channels: ChannelTable,
    private readonly authority: Authority,
    private readonly log: Log
  ) {}

  /** The facts have changed: an answer that is under way is asked for again. */
  factsChanged(): void {
    this.#changes++
  }

  async decide(name: string, caller: SignedInCaller): Promise<Verdict | undefined> {
    // Asked again when the plugin was reloaded or the facts have changed meanwhile: only what is current counts.
    for (let found = this.channels.find(name); found !== undefined; ) {
      const before = this.#changes
      let verdict: Verdict
      try {
        verdict = await this.authority.decide(found.record, found.id, caller)
      } catch (error) {
        this.#couldNotDecide(error, found.record, name)
        return undefined
      }
      if (!verdict.isGranted) return verdict
      const now = this.channels.find(name)
      if (now?.record === found.record && before === this.#changes) return verdict
      found = now
    }
    return refused
  }

  /** For what has been granted: what changes meanwhile is followed by a further question. */
  async decideIn(
    record: ChannelRecord,
    project: string,
    caller: SignedInCaller
  ): Promise<Verdict | undefined> {
    try {
      return { isGranted: await this.authority.decideIn(record, project, caller), project }
    } catch (error) {
      this.#couldNotDecide(error, record, record.name)
      return undefined
    }
  }

  #couldNotDecide(error: unknown, { plugin }: ChannelRecord, channel: string): void {
    this.log.error({ err: error, plugin, channel }, 'access to a channel could not be decided')
  }
}
