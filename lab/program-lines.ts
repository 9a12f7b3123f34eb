import { createInterface } from 'node:readline'
import { bounded } from 'busbar/sdk'

/** The lines that a program says, each waited for with a limit. What it says beyond them is read too, so that it can go on. */
export class ProgramLines {
  readonly #said: string[] = []
  #seen = 0
  #hasEnded = false
  #wake = (): void => {}

  constructor(
    output: NodeJS.ReadableStream,
    private readonly program: string
  ) {
    createInterface({ input: output })
      .on('line', line => {
        this.#said.push(line)
        this.#wake()
      })
      .on('close', () => {
        this.#hasEnded = true
        this.#wake()
      })
  }

  /** The next line that is meant. Rejects when the program says no more, or not within the limit; `what` completes "was to say …". */
  async next(what: string, isMeant = (_line: string): boolean => true, ms = 60_000): Promise<string> {
    return await bounded(async () => await this.#find(what, isMeant), {
      ms,
      what: `${this.program}, which was to say ${what},`
    })
  }

  async #find(what: string, isMeant: (line: string) => boolean): Promise<string> {
    for (;;) {
      for (const line of this.#said.slice(this.#seen)) {
        this.#seen++
        if (isMeant(line)) return line
      }
      if (this.#hasEnded)
        throw new Error(`${this.program} ended before it said ${what}: ${this.#said.slice(-20).join('\n')}`)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }
}
