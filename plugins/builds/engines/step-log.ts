import type { StepProgress } from 'busbar/api/images'
import type { BuildLogLine } from '../api.js'
import { type ProgressEvent, readProgress } from './plain-progress.js'

/** What a failed build has said last. */
export interface BuildEnding {
  /** The steps that failed, as they are named, with BuildKit's reason: `process "…" did not complete successfully: exit code: 1`. */
  readonly failed: ReadonlyArray<{ readonly name: string; readonly reason: string }>
  /** What stands behind the last step; the error of the whole build is in it. */
  readonly text: readonly string[]
}

/** The end of a build names its error; what it quotes of the Dockerfile is bounded by that. */
const keptText = 200

/** What BuildKit does for itself, before and after the steps of a Dockerfile. */
const isInternal = (name: string): boolean => name.startsWith('[internal]') || name.startsWith('[auth]')

/** Its client logs each attempt that it repeats, as one to write a layer that another step is writing. */
const isOfClient = (text: string): boolean => text.startsWith('time="') && text.includes('" level=')

/** Writes the progress of a build to its log, a step by its name, and keeps what an error can be told from. */
export class StepLog {
  readonly #names = new Map<number, string>()
  readonly #failed: Array<{ readonly name: string; readonly reason: string }> = []
  readonly #text: string[] = []

  constructor(
    private readonly log: (line: BuildLogLine) => void,
    private readonly onStep: (step: StepProgress) => void = () => {}
  ) {}

  get ending(): BuildEnding {
    return { failed: this.#failed, text: this.#text }
  }

  read(line: string): void {
    const event = readProgress(line)
    if (event !== undefined) this.#take(event)
  }

  #take(event: ProgressEvent): void {
    if (event.kind === 'text') {
      this.#text.push(event.text)
      if (this.#text.length > keptText) this.#text.shift()
      this.log({ level: isOfClient(event.text) ? 'debug' : 'info', stream: 'stderr', msg: event.text })
      return
    }
    const known = this.#names.get(event.step)
    const name = known ?? ('name' in event ? event.name : 'text' in event ? event.text : `step ${event.step}`)
    if (known === undefined) {
      this.#names.set(event.step, name)
      this.#tell(name, name)
      this.#note(event.step, name, 'running')
      if (event.kind === 'step' || event.kind === 'status') return
    }
    switch (event.kind) {
      case 'step':
        return
      case 'output':
        this.log({ level: 'info', stream: 'stdout', msg: event.text })
        return
      case 'status':
        this.log({ level: 'debug', stream: 'stdout', msg: event.text })
        return
      case 'cached':
        this.#note(event.step, name, 'cached')
        this.#tell(name, `${label(name)} is taken from the cache`)
        return
      case 'done':
        this.#note(event.step, name, 'done')
        this.#tell(name, `${label(name)} is done after ${event.seconds.toFixed(1)} s`)
        return
      case 'cancelled':
        this.#note(event.step, name, 'cancelled')
        this.#tell(name, `${label(name)} was cancelled`)
        return
      case 'failed':
        this.#note(event.step, name, 'failed')
        this.#failed.push({ name, reason: event.reason })
        this.log({ level: 'error', msg: `${label(name)} failed: ${event.reason}` })
    }
  }

  #note(number: number, name: string, state: StepProgress['state']): void {
    if (!isInternal(name)) this.onStep({ number, name, state })
  }

  #tell(name: string, msg: string): void {
    this.log({ level: isInternal(name) ? 'debug' : 'info', msg })
  }
}

/** `[build 2/4]` of `[build 2/4] RUN npm ci`, or the whole name where it has none. */
function label(name: string): string {
  const end = name.startsWith('[') ? name.indexOf(']') : -1
  return end < 0 ? name.slice(0, 100) : name.slice(0, end + 1)
}
