import { setTimeout as wait } from 'node:timers/promises'
import type { BulkSignals } from '../../core/database/listener.js'

export interface End extends BulkSignals {
  /** Nothing comes or goes at this end; the others hear each other. */
  isCut: boolean
  reconnect(): void
}

/** The process's share of a line on which everybody hears everybody, as on NOTIFY, in order. */
export class Line {
  readonly #listeners = new Set<(data: string) => void>()
  readonly sent: string[] = []
  readonly lost: string[] = []
  isDown = false
  loses: (data: string) => boolean = () => false

  signals(): End {
    const reconnects = new Set<() => void>()
    const own = new Set<(data: string) => void>()
    const end: End = {
      isCut: false,
      signal: async (_, data) => {
        if (Buffer.byteLength(data) > 7900) throw new Error('payload string too long')
        for (const listener of own) listener(data)
        await wait(1)
        if (this.isDown || end.isCut || this.loses(data)) {
          this.lost.push(data)
          throw new Error('no connection')
        }
        this.sent.push(data)
        for (const listener of this.#listeners) if (!own.has(listener)) listener(data)
      },
      signalAll: async (topic, data) => {
        const results = await Promise.allSettled(data.map(async one => await end.signal(topic, one)))
        for (const result of results) if (result.status === 'rejected') throw result.reason
      },
      onSignal: (_, listener) => {
        const hear = (data: string): void => {
          if (!end.isCut) listener(data)
        }
        own.add(hear)
        this.#listeners.add(hear)
        return () => {
          this.#listeners.delete(hear)
        }
      },
      onReconnect: listener => {
        reconnects.add(listener)
        return () => {
          reconnects.delete(listener)
        }
      },
      reconnect: () => {
        for (const listener of reconnects) listener()
      }
    }
    return end
  }

  kinds(): string[] {
    return this.sent.map(text => String(JSON.parse(text).kind))
  }
}
