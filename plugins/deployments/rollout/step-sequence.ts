import { settleAll } from 'busbar/sdk'
import type { RolloutStepName } from '../api.js'
import type { Rollout } from './rollout.js'

/** One named step: what it adds to what the steps before it have left. */
export interface RolloutStep<In extends Rollout, Added extends object> {
  readonly name: RolloutStepName
  /**
   * True for one that need not wait until it is noted that it has begun: what it does is harmless, or is undone
   * whatever the note says. What is not, waits for `noted`.
   */
  readonly isEarly?: boolean
  run(rollout: In, noted: Promise<void>): Promise<Added>
}

/** What happens around a step. Whatever they throw ends the sequence. */
export interface Boundaries {
  before(step: RolloutStepName, rollout: Rollout): Promise<void>
  /** Notes that it begins. */
  note(step: RolloutStepName, rollout: Rollout): Promise<void>
  after(step: RolloutStepName, rollout: Rollout): Promise<void>
  /** Settles like `work`, or rejects where that does not end although its signal aborted. */
  ends<T>(step: RolloutStepName, rollout: Rollout, work: Promise<T>): Promise<T>
}

type AnyStep = RolloutStep<never, object>

/** Steps of which each gets what it needs from those before it: one in the wrong place does not compile. */
export class StepSequence<In extends Rollout, Out extends Rollout> {
  readonly #steps: readonly AnyStep[]

  private constructor(steps: readonly AnyStep[]) {
    this.#steps = steps
  }

  static from<In extends Rollout>(): StepSequence<In, In> {
    return new StepSequence<In, In>([])
  }

  with<Added extends object>(step: RolloutStep<Out, Added>): StepSequence<In, Out & Added> {
    return new StepSequence<In, Out & Added>([...this.#steps, step])
  }

  async run(rollout: In, { before, note, after, ends }: Boundaries): Promise<Out> {
    let state: Rollout = rollout
    for (const step of this.#steps) {
      await before(step.name, state)
      const noted = note(step.name, state)
      if (step.isEarly !== true) await noted
      // The note counts: it says that the deployment was cancelled, or is another process's by now.
      const [, added] = await settleAll([noted, ends(step.name, state, step.run(state as never, noted))])
      state = { ...state, ...added }
      await after(step.name, state)
    }
    return state as Out
  }
}
