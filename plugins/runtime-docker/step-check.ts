import type { GeneratedSource, StepProgress } from 'busbar/api/images'
import { problems } from './problems.js'

const step = /^Step \d+\/\d+ : /
const runs = /^ ---> Running in [0-9a-f]{12}\n?$/
const cached = / ---> Using cache\n?$/
const ended = /^ ---> (?:[0-9a-f]{12})?\n?$/

/**
 * Compares what the engine says that it carries out with what it was given, step by step. Where its reading of the
 * Dockerfile differs from ours, nothing is sure of what we checked, so the build ends.
 *
 * A command can print such words too. The engine says the next step only after it has said where the last one ended,
 * and by then the command is over: what comes between is output. A command that prints an end and a step of its own
 * ends its own build.
 */
export class StepCheck {
  #done = 0
  #isRunning = false
  #isCached = false
  #hasEnded = false

  constructor(
    private readonly source: GeneratedSource,
    private readonly onStep: (step: StepProgress) => void = () => {}
  ) {}

  /** One message of the engine; answers what is to be shown of it. Throws 502 E_BUILD_DIFFERS. */
  read(text: string): string {
    if (runs.test(text)) this.#isRunning = true
    else if (ended.test(text)) this.#isRunning = false
    if (!this.#isRunning && cached.test(text)) this.#isCached = true
    if (this.#isRunning || !step.test(text)) return text
    const { steps } = this.source
    const count = `Step ${this.#done + 1}/${steps.length} : `
    const expected = steps[this.#done]
    const said = text.endsWith('\n') ? text.slice(0, -1) : text
    if (expected === undefined || said !== count + expected.text) throw this.#differs(said)
    this.#settle(this.#isCached ? 'cached' : 'done')
    this.#done++
    this.#settle('running')
    return text.replace(said, () => count + expected.shown)
  }

  /** The build has ended well. Throws as `read` when steps are missing. */
  end(): void {
    if (this.#done < this.source.steps.length) throw this.#differs('the end of the build')
    this.#settle(this.#isCached ? 'cached' : 'done')
    this.#hasEnded = true
  }

  /** The build has ended otherwise. */
  fail(state: 'failed' | 'cancelled'): void {
    this.#settle(state)
  }

  /** Where it is, in the author's Dockerfile; undefined before the first step. */
  get sourceLine(): number | undefined {
    return this.source.steps[this.#done - 1]?.sourceLine
  }

  /** What the step is now that was begun last. */
  #settle(state: StepProgress['state']): void {
    const { steps } = this.source
    const step = steps[this.#done - 1]
    if (step === undefined || this.#hasEnded) return
    const number = this.#done
    this.onStep({ number, name: `[${number}/${steps.length}] ${step.shown}`, state })
    this.#isCached = false
  }

  #differs(said: string): Error {
    const { name, steps } = this.source
    const expected = steps[this.#done]
    return problems.buildDiffers({
      dockerfile: name,
      line: expected?.sourceLine ?? steps.at(-1)?.sourceLine ?? 1,
      expected: expected === undefined ? 'the end of the build' : short(expected.text),
      said: short(said)
    })
  }
}

const short = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text)
