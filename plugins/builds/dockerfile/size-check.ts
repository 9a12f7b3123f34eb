import { BadDockerfile, quoted } from './bad-dockerfile.js'
import type { Escape } from './characters.js'
import { longestWord } from './expansion.js'
import { exposedPorts } from './exposed-ports.js'
import { canExpand, linesOf, type PlainInstruction, type StageInstruction } from './instruction.js'
import type { ImageUse, Plan, PlannedStage } from './plan.js'
import { StageSize, wordsOf } from './stage-size.js'
import type { StageVariables } from './stage-variables.js'
import { type BaseImage, walkStages } from './stage-walk.js'
import { readTrigger, triggerEscape } from './triggers.js'
import type { LengthsOfVariables } from './word-bound.js'

/** Each look at a container and at its image tells all of them. */
const mostPorts = 64
const mostVolumes = 64
/** The engine goes through all of them for each one that is set or read. */
const mostVariables = 1000
const mostLabelBytes = 64 * 1024
const mostImageBytes = 256 * 1024
/** Labels of every step are in each answer with a list of images. */
const mostStepLabelBytes = 4 * 2 ** 20
const mostStepBytes = 32 * 2 ** 20
/** Of a step that sets nothing: the labels of the platform. */
const ownLabelBytes = 1024
/** The engine's time for a word grows with the square of its length. A Dockerfile has room for four of the longest. */
const mostWork = 5 * longestWord ** 2

/** An instruction where it is carried out: a trigger under the FROM that brings it. */
interface Carried {
  readonly instruction: StageInstruction
  readonly line: number
  readonly escapeChar: Escape
}

/**
 * Refuses a Dockerfile of which the engine would make too much: its own limits do not hold while it puts variables in,
 * and what a step says of itself is repeated in each that follows. Whatever is counted is an upper bound. Throws
 * `BadDockerfile`.
 */
export function checkSize(
  plan: Plan,
  buildArgs: Readonly<Record<string, string>>,
  baseImage: (use: ImageUse) => BaseImage
): void {
  const {
    dockerfile: { escapeChar },
    globals
  } = plan
  const outer = outerLengths(globals, buildArgs)
  const totals = new Totals()
  for (const { value = '', line } of globals) totals.addWork(Buffer.byteLength(value), line)
  const ended = new Map<string, { readonly size: StageSize; readonly stage: PlannedStage }>()
  for (const { stage, variables } of walkStages(plan, buildArgs, baseImage)) {
    const { base, from } = stage
    const before = base.kind === 'stage' ? ended.get(base.name) : undefined
    const size =
      base.kind === 'image'
        ? StageSize.uponImage(baseImage(base.use), outer)
        : StageSize.upon(before?.size, outer)
    checkDeclared(size, from.line, 'the image that is built upon')
    totals.addStep(size, from.line)
    const triggers =
      base.kind === 'image' ? triggersOf(baseImage(base.use).onBuild ?? []) : ownTriggers(before?.stage)
    for (const instruction of triggers)
      carryOut({ instruction, line: from.line, escapeChar: triggerEscape }, size, variables, totals)
    for (const { instruction } of stage.instructions)
      carryOut({ instruction, line: instruction.line, escapeChar }, size, variables, totals)
    if (from.name !== undefined) ended.set(from.name, { size, stage })
  }
}

/** What cannot be read was refused before. */
const triggersOf = (onBuild: readonly string[]): readonly StageInstruction[] =>
  onBuild.flatMap(text => readTrigger(text) ?? [])

const ownTriggers = (stage: PlannedStage | undefined): readonly StageInstruction[] =>
  (stage?.instructions ?? []).flatMap(({ instruction }) =>
    instruction.kind === 'onbuild' ? instruction.trigger : []
  )

function outerLengths(
  globals: Plan['globals'],
  buildArgs: Readonly<Record<string, string>>
): LengthsOfVariables {
  const lengths = new Map<string, number>()
  for (const [name, value = ''] of [
    ...globals.map(({ name, value }) => [name, value] as const),
    ...Object.entries(buildArgs)
  ])
    lengths.set(name, Math.max(lengths.get(name) ?? 0, Buffer.byteLength(value)))
  const longest = Math.max(0, ...lengths.values())
  return { of: name => lengths.get(name) ?? 0, longest: () => longest }
}

function carryOut(carried: Carried, size: StageSize, variables: StageVariables, totals: Totals): void {
  const { instruction, line, escapeChar } = carried
  const refuse = (reason: string): never => {
    throw new BadDockerfile(line, reason)
  }
  const length = size.apply(instruction, escapeChar, refuse)
  if (length > longestWord)
    refuse(
      `${quoted(linesOf(instruction, escapeChar).join(' '))} can become longer than ${longestWord} characters with its variables put in: shorten it or what its variables hold`
    )
  totals.addWork(length, line)
  variables.apply({ ...instruction, line })
  if (instruction.kind === 'plain') count(instruction, line, size, variables)
  if (size.variables > mostVariables)
    refuse(`a stage has more than ${mostVariables} variables here: put what they hold into a file`)
  checkDeclared(size, line, 'the image')
  checkBytes(size, line)
  totals.addStep(size, line, linesOf(instruction, escapeChar).length)
}

function count(
  { keyword, text }: PlainInstruction,
  line: number,
  size: StageSize,
  variables: StageVariables
): void {
  if (keyword === 'EXPOSE') {
    const refuse = (reason: string): never => {
      throw new BadDockerfile(line, reason)
    }
    const ports =
      (canExpand(text) ? variables.expand(text) : text) ??
      refuse(
        `EXPOSE ${quoted(text)} holds a variable whose value is not certain before the build: write the port out`
      )
    size.ports += exposedPorts(ports, refuse)
  }
  if (keyword === 'VOLUME') size.volumes += wordsOf(keyword, text).length
  if (keyword === 'LABEL' && size.labelBytes > mostLabelBytes)
    throw new BadDockerfile(
      line,
      `the labels of the image become larger than ${mostLabelBytes} bytes here, with those that it is built upon: put what they hold into a file of the image`
    )
}

function checkDeclared(size: StageSize, line: number, what: string): void {
  const refuse = (count: string, most: number, remedy: string): never => {
    throw new BadDockerfile(line, `${what} has ${count} here, and may have ${most}: ${remedy}`)
  }
  if (size.ports > mostPorts)
    refuse(`${size.ports} exposed ports`, mostPorts, 'EXPOSE those that the application listens on')
  if (size.volumes > mostVolumes)
    refuse(`${size.volumes} volumes`, mostVolumes, 'declare a VOLUME for a directory above them')
}

function checkBytes({ bytes }: StageSize, line: number): void {
  if (bytes > mostImageBytes)
    throw new BadDockerfile(
      line,
      `what the image says of itself (ENV, LABEL, ONBUILD, commands) can become larger than ${mostImageBytes} bytes here: put what they hold into files of the image`
    )
}

/** What the steps of all stages come to. */
class Totals {
  #work = 0
  #stepBytes = 0
  #stepLabelBytes = 0

  addWork(length: number, line: number): void {
    this.#work += length ** 2
    if (this.#work > mostWork)
      throw new BadDockerfile(
        line,
        'the instructions up to this one can become too long together with their variables put in: shorten what their variables hold'
      )
  }

  addStep(size: StageSize, line: number, steps = 1): void {
    this.#stepLabelBytes += (size.stepLabelBytes + ownLabelBytes) * steps
    this.#stepBytes += size.stepBytes * steps
    const what =
      this.#stepLabelBytes > mostStepLabelBytes
        ? 'labels'
        : this.#stepBytes > mostStepBytes
          ? 'ENVs, ARGs, labels and commands'
          : undefined
    if (what !== undefined)
      throw new BadDockerfile(
        line,
        `the ${what} up to here are repeated by too many steps: each step repeats those before it; put several commands into one RUN, and what is long into a file or at the end`
      )
  }
}
