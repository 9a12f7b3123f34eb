import type { Log } from 'busbar/sdk'

interface OutageTexts {
  readonly begins: string
  readonly ends: string
}

/** What cannot be done for a while, and is tried again and again: told when it begins, when its cause becomes another, and when it is over. */
export class Outage {
  #cause: string | undefined

  constructor(
    private readonly log: Pick<Log, 'warn' | 'info' | 'debug'>,
    private readonly texts: OutageTexts
  ) {}

  note(error: unknown): void {
    const cause = error instanceof Error ? error.message : String(error)
    const isKnown = cause === this.#cause
    this.#cause = cause
    this.log[isKnown ? 'debug' : 'warn']({ err: error }, this.texts.begins)
  }

  over(): void {
    if (this.#cause === undefined) return
    this.#cause = undefined
    this.log.info(this.texts.ends)
  }
}
