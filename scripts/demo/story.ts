const isTerminal = process.stdout.isTTY
const paint =
  (code: string) =>
  (text: string): string =>
    isTerminal ? `\u001b[${code}m${text}\u001b[0m` : text
const bold = paint('1')
const green = paint('32')
const red = paint('31')
const dim = paint('2')

/** A claim of the demo that turned out to be false. */
class BrokenClaim extends Error {}

/** Tells the demo: numbered chapters, what was seen, what was claimed and held, and the times. */
export class Story {
  #chapter = 0
  readonly #times: Array<readonly [string, string]> = []
  readonly #startedAt = performance.now()

  chapter(title: string): void {
    this.#chapter++
    console.log(`\n${bold(`${this.#chapter}. ${title}`)}`)
  }

  /** A fact on the way. */
  tell(text: string): void {
    console.log(`   ${text}`)
  }

  /** Output of a program, as it comes. */
  quote(text: string): void {
    console.log(dim(`   │ ${text}`))
  }

  /** Prints the claim with a tick, or ends the demo because it does not hold. */
  claim(holds: boolean, text: string): void {
    if (!holds) throw new BrokenClaim(text)
    console.log(`   ${green('✓')} ${text}`)
  }

  /** Keeps a time for the table at the end. */
  time(what: string, ms: number): void {
    this.#times.push([what, seconds(ms)])
  }

  end(): void {
    this.time('the whole demo', performance.now() - this.#startedAt)
    console.log(`\n${bold('Times')}`)
    const width = Math.max(...this.#times.map(([what]) => what.length))
    for (const [what, took] of this.#times) console.log(`   ${what.padEnd(width)}  ${took.padStart(8)}`)
    console.log(`\n${green('Everything above was seen to be true.')}`)
  }

  fail(error: unknown): void {
    const text =
      error instanceof BrokenClaim
        ? `this was claimed and does not hold: ${error.message}`
        : error instanceof Error
          ? (error.stack ?? error.message)
          : String(error)
    console.error(`\n${red('✗')} ${text}`)
  }
}

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`
