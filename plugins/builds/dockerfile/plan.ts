import { BadDockerfile, quoted } from './bad-dockerfile.js'
import { ExpansionBudget, expandWord, type Variables } from './expansion.js'
import {
  type Dockerfile,
  type Instruction,
  linesOf,
  type OnBuildInstruction,
  type Stage
} from './instruction.js'
import { inCacheOrder } from './step-order.js'
import type { Refuse } from './words.js'

/** An image that is taken from outside of the Dockerfile. */
export interface ImageUse {
  readonly reference: string
  readonly platform?: string
  readonly line: number
  /** It is built upon, so that its triggers are carried out. */
  readonly isBase: boolean
}

export type Base =
  | { readonly kind: 'scratch' }
  | { readonly kind: 'stage'; readonly name: string }
  | { readonly kind: 'image'; readonly use: ImageUse }

/** From where a COPY takes: nothing of these, the build context. */
type CopySource =
  /** `from` is what the engine is told: a number, in a trigger a name as it is written. */
  { readonly kind: 'stage'; readonly from: string } | { readonly kind: 'image'; readonly use: ImageUse }

export interface PlannedInstruction {
  readonly instruction: Instruction
  /** Of a COPY --from, and of one that is a trigger. */
  readonly source?: CopySource
}

export interface PlannedStage {
  readonly from: Stage['from']
  readonly base: Base
  /** In the order in which they are carried out. */
  readonly instructions: readonly PlannedInstruction[]
  readonly scope: StageScope
}

/** A Dockerfile in which it is settled what each name means. */
export interface Plan {
  readonly dockerfile: Dockerfile
  /** The values of the ARGs before the first FROM without what the application sets; absent: they have none. */
  readonly globals: ReadonlyArray<{
    readonly name: string
    readonly value: string | undefined
    readonly line: number
  }>
  readonly stages: readonly PlannedStage[]
}

/**
 * Settles every name, with the values that the application has for ARGs. `automatic`: what FROM may say without an ARG. Throws
 * `BadDockerfile`.
 */
export function planDockerfile(
  dockerfile: Dockerfile,
  buildArgs: Readonly<Record<string, string>>,
  automatic: Readonly<Record<string, string>> = {}
): Plan {
  const budget = new ExpansionBudget()
  const expand: Expand = (word, variables, refuse) =>
    expandWord(word, { variables, escapeChar: dockerfile.escapeChar, budget, refuse })
  const { globals, variables } = readGlobals(dockerfile, { buildArgs, automatic }, expand)
  const earlier = new Map<string, PlannedStage>()
  const all = new Set(dockerfile.stages.flatMap(({ from }) => from.name ?? []))
  const numbers = new Map<string, number>()
  const stages: PlannedStage[] = []
  for (const { from, instructions } of dockerfile.stages) {
    if (from.name !== undefined && earlier.has(from.name))
      throw new BadDockerfile(from.line, `there are two stages called ${from.name}: rename one of them`)
    const scope: StageScope = {
      earlier: below(numbers, stages.length),
      all,
      index: stages.length
    }
    const base = baseOf(from, earlier, word => expand(word, variables, refuseAt(from.line)))
    if (base.kind === 'stage') checkOwnTriggers(earlier.get(base.name), scope, from.line)
    const stage = {
      from,
      base,
      instructions: inCacheOrder(instructions).map(instruction => planInstruction(instruction, scope)),
      scope
    }
    if (from.name !== undefined) {
      earlier.set(from.name, stage)
      numbers.set(from.name, stages.length)
    }
    stages.push(stage)
  }
  return { dockerfile, globals, stages }
}

type Expand = (word: string, variables: Variables, refuse: Refuse) => string

/** A view, and no copy for each stage: there may be as many stages as instructions. */
const below = (numbers: ReadonlyMap<string, number>, index: number): StageScope['earlier'] => {
  const get = (name: string): number | undefined => {
    const number = numbers.get(name)
    return number !== undefined && number < index ? number : undefined
  }
  return { get, has: name => get(name) !== undefined }
}

/** The stages that something in a stage can name. */
export interface StageScope {
  /** By name, with their number. */
  readonly earlier: Pick<ReadonlyMap<string, number>, 'get' | 'has'>
  /** The names of the others too. */
  readonly all: ReadonlySet<string>
  /** The number of the stage itself. */
  readonly index: number
}

/** What is taken from outside, each in the order of its line. */
export const imagesOf = ({ stages }: Plan): readonly ImageUse[] =>
  stages.flatMap(({ base, instructions }) => [
    ...(base.kind === 'image' ? [base.use] : []),
    ...instructions.flatMap(({ source }) => (source?.kind === 'image' ? [source.use] : []))
  ])

function readGlobals(
  { globals }: Dockerfile,
  {
    buildArgs,
    automatic
  }: {
    readonly buildArgs: Readonly<Record<string, string>>
    readonly automatic: Readonly<Record<string, string>>
  },
  expand: Expand
): { readonly globals: Plan['globals']; readonly variables: Variables } {
  const variables = new Map<string, string>(Object.entries(automatic))
  const values = globals.flatMap(({ declarations, line }) =>
    declarations.map(({ name, value: written }) => {
      const value = written === undefined ? undefined : expand(written, variables, refuseAt(line))
      const used = Object.hasOwn(buildArgs, name) ? buildArgs[name] : value
      if (used !== undefined) variables.set(name, used)
      return { name, value, line }
    })
  )
  return { globals: values, variables }
}

const refuseAt =
  (line: number): Refuse =>
  reason => {
    throw new BadDockerfile(line, reason)
  }

function baseOf(
  from: Stage['from'],
  earlier: ReadonlyMap<string, PlannedStage>,
  expand: (word: string) => string
): Base {
  const { line } = from
  const refuse = refuseAt(line)
  const reference = expand(from.image)
  if (reference === '')
    return refuse(
      `FROM ${quoted(from.image)} names nothing, because its variables are empty: give the ARG before the first FROM a default, or set the variable of the application`
    )
  const platform = from.platform === undefined ? undefined : expand(from.platform)
  if (platform !== undefined && !/^[a-z0-9]+(?:\/[a-z0-9]+){0,2}$/.test(platform)) {
    return refuse(
      `--platform=${quoted(from.platform ?? '')} is ${platform === '' ? 'empty' : 'no platform'}: leave it out, or write linux/amd64`
    )
  }
  const name = reference.toLowerCase()
  if (earlier.has(name)) return { kind: 'stage', name }
  if (reference === 'scratch') return { kind: 'scratch' }
  return {
    kind: 'image',
    use: { reference, ...(platform !== undefined && { platform }), line, isBase: true }
  }
}

function planInstruction(instruction: Instruction, scope: StageScope): PlannedInstruction {
  const { line } = instruction
  if (instruction.kind === 'copy' && instruction.from !== undefined)
    return { instruction, source: copySource(instruction.from, scope, line) }
  if (
    instruction.kind === 'onbuild' &&
    instruction.trigger.kind === 'copy' &&
    instruction.trigger.from !== undefined
  ) {
    return { instruction, source: triggerSource(instruction.trigger.from, scope, line) }
  }
  return { instruction }
}

const isStageNumber = (text: string): boolean => /^(?:0|[1-9]\d{0,3})$/.test(text)

function copySource(from: string, { earlier, index }: StageScope, line: number): CopySource {
  const refuse = refuseAt(line)
  if (from.includes('$'))
    return refuse(
      `--from=${quoted(from)} holds a variable, which is not put in there: name the stage, and give that stage FROM \${…}`
    )
  const stage = earlier.get(from.toLowerCase())
  if (stage !== undefined) return { kind: 'stage', from: String(stage) }
  if (/^[+-]?\d+$/.test(from)) {
    return isStageNumber(from) && Number(from) < index
      ? { kind: 'stage', from }
      : refuse(`--from=${quoted(from)} is the number of no stage before this one: stages are counted from 0`)
  }
  return { kind: 'image', use: { reference: from, line, isBase: false } }
}

/** A trigger is carried out in a stage to come, whose stages it means. */
function triggerSource(from: string, scope: StageScope, line: number): CopySource {
  return isStageNumber(from) || scope.all.has(from.toLowerCase())
    ? { kind: 'stage', from: from.toLowerCase() }
    : copySource(from, scope, line)
}

/** A stage that is built upon hands on the triggers that it has set. */
function checkOwnTriggers(base: PlannedStage | undefined, scope: StageScope, line: number): void {
  for (const { instruction, source } of base?.instructions ?? []) {
    if (instruction.kind === 'onbuild' && source?.kind === 'stage')
      requireStage(source.from, instruction, scope, line)
  }
}

/** What a trigger names must be a stage where it is carried out: otherwise the engine would look for an image. */
export function requireStage(
  from: string,
  { trigger }: OnBuildInstruction,
  { earlier, index }: StageScope,
  line: number
): void {
  const isStage = isStageNumber(from) ? Number(from) < index : earlier.has(from)
  if (!isStage)
    throw new BadDockerfile(
      line,
      `the image that is built upon here carries the trigger ${quoted(linesOf(trigger, '\\').join(''))}, and there is no stage ${quoted(from)} before this one: write that COPY into this Dockerfile`
    )
}
