import { randomUUID } from 'node:crypto'
import type { Bus, Clock, Log } from 'busbar/sdk'
import type { PlatformUpdates } from './api.js'
import { problems } from './problems.js'

const topic = 'update'
/** Who has begun an update says so again and again; for others it is over when that has not come for a while. */
const repeatMs = 20_000
const lapseMs = 60_000
const longestMs = 3_600_000

interface Notice {
  /** Which run of which process has begun it. */
  readonly by: string
  readonly isUpdating: boolean
}

interface NoticeParts {
  readonly bus: Pick<Bus, 'publish' | 'signal' | 'onSignal'>
  readonly clock: Pick<Clock, 'elapsed' | 'every'>
  readonly log: Log
}

/** Whether the platform is being updated, as far as this process knows. See `PlatformUpdates`. */
export class UpdateNotice implements PlatformUpdates {
  readonly #self = randomUUID()
  /** Until when it is taken to be true, by who has begun it. */
  readonly #until = new Map<string, number>()
  #stopRepeating = (): void => {}
  readonly #stopListening: () => void

  constructor(private readonly parts: NoticeParts) {
    this.#stopListening = parts.bus.onSignal(topic, data => {
      this.#hear(data)
    })
  }

  isUpdating(): boolean {
    const now = this.#now()
    for (const [by, until] of this.#until) if (until <= now) this.#until.delete(by)
    return this.#until.size > 0
  }

  async begin(): Promise<void> {
    if (this.isUpdating()) throw problems.updating()
    const { bus, clock } = this.parts
    this.#until.set(this.#self, this.#now() + longestMs)
    this.#stopRepeating = clock.every(repeatMs, async () => {
      if (this.isUpdating() && this.#until.has(this.#self)) await this.#tell(true)
      else this.#stopRepeating()
    })
    bus.publish('platform', 'update', { updating: true })
    await this.#tell(true)
  }

  async abandon(): Promise<void> {
    if (!this.#until.delete(this.#self)) return
    this.#stopRepeating()
    this.parts.bus.publish('platform', 'update', { updating: false })
    await this.#tell(false)
  }

  /** Says nothing: that the plugin is turned off does not end an update. */
  close(): void {
    this.#stopRepeating()
    this.#stopListening()
  }

  /** To the other processes; an update does not wait for them, nor for the database by which they hear of it. */
  async #tell(isUpdating: boolean): Promise<void> {
    const { bus, log } = this.parts
    await bus
      .signal(topic, JSON.stringify({ by: this.#self, isUpdating } satisfies Notice))
      .catch((error: unknown) => {
        log.warn(
          { err: error, isUpdating },
          'the other processes could not be told of an update of the platform'
        )
      })
  }

  #hear(data: string): void {
    const { by, isUpdating } = JSON.parse(data) as Notice
    if (by === this.#self) return
    if (isUpdating) this.#until.set(by, this.#now() + lapseMs)
    else this.#until.delete(by)
  }

  #now(): number {
    return this.parts.clock.elapsed()
  }
}
