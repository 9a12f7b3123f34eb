import type { Proven, Rollout, RolloutTools, Switched, WithImage } from './rollout.js'
import { StepSequence } from './step-sequence.js'
import { cleanUp } from './steps/clean-up.js'
import { create, network, start } from './steps/container.js'
import { drain } from './steps/drain.js'
import { load } from './steps/load.js'
import { prepareImage } from './steps/prepare-image.js'
import { proveHealth } from './steps/prove-healthy.js'
import { type Recordable, record } from './steps/record.js'
import { switchTraffic } from './steps/switch.js'

/** What deployments do, in order. */
export interface RolloutSteps {
  /** A new version that serves. */
  readonly deploy: StepSequence<Rollout, Switched>
  /** An image alone: containers are left as they are. */
  readonly build: StepSequence<Rollout, WithImage>
  /** The rest of a deploy whose process crashed when the switch had begun. */
  readonly resume: StepSequence<Proven, Switched>
  /** Makes it a success. */
  readonly record: StepSequence<Recordable, Recordable>
  /** After a success; the deployment's result does not depend on it. */
  readonly finish: StepSequence<Switched, Switched>
}

export function rolloutSteps(tools: RolloutTools): RolloutSteps {
  return {
    deploy: StepSequence.from<Rollout>()
      .with(load(tools))
      .with(prepareImage(tools))
      .with(network(tools))
      .with(create(tools))
      .with(start(tools))
      .with(proveHealth(tools))
      .with(switchTraffic(tools)),
    build: StepSequence.from<Rollout>().with(load(tools)).with(prepareImage(tools)),
    resume: StepSequence.from<Proven>().with(switchTraffic(tools)),
    record: StepSequence.from<Recordable>().with(record(tools)),
    finish: StepSequence.from<Switched>().with(drain(tools)).with(cleanUp(tools))
  }
}
