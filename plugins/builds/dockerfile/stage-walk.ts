import type { DeclaredSize } from 'busbar/api/images'
import { ExpansionBudget } from './expansion.js'
import type { Base, ImageUse, Plan, PlannedStage } from './plan.js'
import { type ArgumentValues, type Inherited, StageVariables } from './stage-variables.js'

/** What of an image that is built upon counts before a build. */
export interface BaseImage {
  /** Absent: which variables it sets is unknown. */
  readonly environment?: Readonly<Record<string, string>>
  readonly onBuild?: readonly string[]
  readonly declared?: DeclaredSize
}

/** Each stage with its variables as they are at its beginning. The caller applies its instructions before it takes the next one. */
export function* walkStages(
  { dockerfile: { escapeChar }, globals, stages }: Plan,
  buildArgs: Readonly<Record<string, string>>,
  baseImage: (use: ImageUse) => BaseImage
): Generator<{ readonly stage: PlannedStage; readonly variables: StageVariables }> {
  const values: ArgumentValues = {
    buildArgs,
    globals: new Map(globals.map(({ name, value }) => [name, value]))
  }
  const budget = new ExpansionBudget()
  const ended = new Map<string, Inherited>()
  for (const stage of stages) {
    const { from, base, instructions } = stage
    const variables = new StageVariables(inheritedFrom(base, ended, baseImage), values, escapeChar, budget)
    yield { stage, variables }
    if (from.name !== undefined)
      ended.set(from.name, setsByTrigger(instructions) ? undefined : variables.inherited)
  }
}

function inheritedFrom(
  base: Base,
  ended: ReadonlyMap<string, Inherited>,
  baseImage: (use: ImageUse) => BaseImage
): Inherited {
  if (base.kind === 'scratch') return new Map()
  if (base.kind === 'stage') return ended.get(base.name)
  const { environment, onBuild = [] } = baseImage(base.use)
  return environment === undefined || onBuild.some(trigger => /^\s*(?:env|arg)\b/i.test(trigger))
    ? undefined
    : new Map(Object.entries(environment))
}

const setsByTrigger = (instructions: PlannedStage['instructions']): boolean =>
  instructions.some(
    ({ instruction }) =>
      instruction.kind === 'onbuild' &&
      (instruction.trigger.kind === 'arg' ||
        (instruction.trigger.kind === 'plain' && instruction.trigger.keyword === 'ENV'))
  )
