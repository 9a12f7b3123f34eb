import type { StepProgress } from 'busbar/api/images'
import { type Bus, type Clock, cutText, type Log, type SecretScope } from 'busbar/sdk'
import type { BuildStepRow } from '../schemas.js'
import type { BuildStepStore } from './build-step-store.js'

const flushEveryMs = 250
/** A Dockerfile has a hundred at most by custom; of more the log tells. */
const maxSteps = 1000
const longestName = 500

interface BuildStepsParts {
  readonly steps: Pick<BuildStepStore, 'save'>
  readonly bus: Bus
  /** The secrets to hide from its readers. */
  readonly secrets: Pick<SecretScope, 'clean'>
  readonly clock: Clock
  readonly log: Log
}

export const buildStepsChannel = (deploymentId: string): string => `build-steps:${deploymentId}`

/** The steps of one build: kept, and told live when they are. */
export class BuildSteps {
  readonly #known = new Map<number, BuildStepRow>()
  readonly #changed = new Set<number>()
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()

  constructor(
    private readonly deploymentId: string,
    private readonly parts: BuildStepsParts
  ) {}

  step({ number, name, state }: StepProgress): void {
    const known = this.#known.get(number)
    if (known === undefined && this.#known.size >= maxSteps) return
    const now = this.parts.clock.now().toISOString()
    this.#known.set(number, {
      number,
      // Cut first, as a line of the log is, and again: a secret must not be cut in two before it is hidden.
      name:
        known?.name ??
        cutText(this.parts.secrets.clean(cutText(name, longestName * 2)), longestName).replaceAll(
          '\0',
          '\u{fffd}'
        ),
      state,
      started_at: known?.started_at ?? now,
      ended_at: state === 'running' ? null : now
    })
    this.#changed.add(number)
    this.#timer ??= setTimeout(() => void this.flush(), flushEveryMs)
  }

  /** Resolves when everything so far is in the record. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.then(async () => await this.#write())
    await this.#flushing
  }

  async #write(): Promise<void> {
    const { steps, bus, log } = this.parts
    const rows = [...this.#changed]
      .sort((one, other) => one - other)
      .flatMap(number => this.#known.get(number) ?? [])
    if (rows.length === 0) return
    this.#changed.clear()
    try {
      // The record first: who subscribes and then reads it misses nothing.
      await steps.save(this.deploymentId, rows)
    } catch (error) {
      log.error({ err: error, deploymentId: this.deploymentId }, 'steps of a build could not be stored')
      // They go with those that change next.
      for (const { number } of rows) this.#changed.add(number)
      return
    }
    const channel = buildStepsChannel(this.deploymentId)
    if (bus.hasSubscribers(channel)) for (const row of rows) bus.publish(channel, 'step', row)
  }
}
