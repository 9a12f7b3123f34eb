import type { KeptLine } from './chunk.js'

/** What the lines of a page have together at most; one line at least is on each. */
const mostCharacters = 1024 * 1024

/** A line that is wanted. */
export interface FoundLine extends KeptLine {
  readonly ordinal: number
  readonly containerId: string
  readonly deploymentId: string | null
}

/** Fills a page with lines that come in their order, and holds no others. */
export class FoundPage {
  readonly lines: FoundLine[] = []
  /** There are lines behind those of the page. */
  hasMore = false
  #seen = 0
  #characters = 0

  constructor(
    private readonly offset: number,
    private readonly limit: number
  ) {}

  /** How many have come. */
  get seen(): number {
    return this.#seen
  }

  add(lines: readonly FoundLine[]): void {
    for (const line of lines) {
      this.#seen++
      if (this.#seen <= this.offset) continue
      this.#characters += line.message.length
      this.hasMore ||=
        this.lines.length === this.limit || (this.lines.length > 0 && this.#characters > mostCharacters)
      if (this.hasMore) return
      this.lines.push(line)
    }
  }
}
