import type { Log } from 'busbar/sdk'
import type { Redactor } from '../log/redactor.js'
import type { ChannelTable } from './channel-table.js'

/** Bytes of the data of one message. A client has room for 64 of them, and so has the way to other processes for a few. */
const longestMessageBytes = 1024 * 1024

/** What is published, as the text that goes to subscribers. */
export class MessageEncoder {
  constructor(
    private readonly channels: ChannelTable,
    private readonly log: Log,
    private readonly redactor: Pick<Redactor, 'cleanJson'> | undefined
  ) {}

  /** Undefined for what the channel may not carry, which is logged: a publisher has no use for an error. */
  encode(channel: string, event: string, data: unknown): string | undefined {
    const record = this.channels.find(channel)?.record
    if (record === undefined || !Object.hasOwn(record.events, event)) {
      this.log.error(
        { channel, event },
        record === undefined
          ? 'a message was published on an undeclared channel'
          : 'a channel was given an event that it does not declare'
      )
      return undefined
    }
    try {
      const json = JSON.stringify(data ?? null) ?? 'null'
      const bytes = Buffer.byteLength(json)
      if (bytes > longestMessageBytes) {
        this.log.error(
          { plugin: record.plugin, channel, event, bytes, longestMessageBytes },
          'a message is too long, and nobody was told it'
        )
        return undefined
      }
      return this.redactor?.cleanJson(json) ?? json
    } catch (error) {
      this.log.error({ err: error, plugin: record.plugin, channel, event }, 'a message is not JSON')
      return undefined
    }
  }
}
