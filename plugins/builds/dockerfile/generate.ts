import { BadDockerfile } from './bad-dockerfile.js'
import { argLine, type CopyInstruction, linesOf, type StageInstruction } from './instruction.js'
import type { ImageUse, Plan, PlannedInstruction, PlannedStage } from './plan.js'
import { addressesIn, notFetched } from './remote-files.js'
import { quoteWord } from './words.js'

/** One instruction of a generated Dockerfile, which is one step of its build. */
interface GeneratedStep {
  /** As it is handed over, and as the engine says it. */
  readonly text: string
  /** For the log: with the name of an image instead of its id, and without signatures. */
  readonly shown: string
  /** In the Dockerfile that is handed over, from 1. */
  readonly line: number
  /** In the author's. */
  readonly sourceLine: number
}

export interface GeneratedDockerfile {
  readonly text: string
  readonly steps: readonly GeneratedStep[]
}

interface GenerationParts {
  readonly labels: Readonly<Record<string, string>>
  /** The id of an image that this application may use. */
  readonly imageId: (use: ImageUse) => string
  /** What the ADDs take that name addresses. */
  readonly remoteFiles: RemoteCopies
}

/** Fetched files: `from` is the id of an image that holds them. Patterns and variables in `sources` are in effect. */
interface RemoteCopy {
  readonly from: string
  readonly sources: readonly string[]
}

export type RemoteCopies = ReadonlyMap<CopyInstruction, RemoteCopy>

/**
 * The Dockerfile that the engine gets: one instruction a line, no name of an image, nothing that it could read in
 * another way. The same plan and ids give the same text, so that the engine's cache holds. The labels come after
 * each FROM, where every later step finds them in the cache and what a failed build leaves carries them too.
 */
export function generateDockerfile(
  { dockerfile: { escapeChar }, globals, stages }: Plan,
  parts: GenerationParts
): GeneratedDockerfile {
  const header = `# escape=${escapeChar}`
  const label = labelLine(parts.labels, value => quoteWord(value, escapeChar))
  // Upon scratch the engine takes any image for this step that says so of itself, one from a registry too. So the
  // signature is not shown.
  const shownLabel = labelLine(parts.labels, (value, key) =>
    key.startsWith('busbar-') && value !== '' ? '…' : quoteWord(value, escapeChar)
  )
  const written: Array<Omit<GeneratedStep, 'line'>> = globals.map(({ name, value, line }) =>
    step(argLine(name, value, escapeChar), line)
  )
  for (const stage of stages) {
    written.push(fromStep(stage, parts))
    // A stage that continues one before it has its labels already.
    if (stage.base.kind !== 'stage') written.push({ ...step(label, stage.from.line), shown: shownLabel })
    for (const planned of stage.instructions) {
      const { line } = planned.instruction
      const texts = linesOf(handedOver(planned, parts), escapeChar)
      const shown = linesOf(planned.instruction, escapeChar)
      written.push(...texts.map((text, index) => ({ ...step(text, line), shown: shown[index] ?? text })))
    }
  }
  const steps = written.map((step, index) => ({ ...step, line: index + 2 }))
  return { text: [header, ...steps.map(({ text }) => text), ''].join('\n'), steps }
}

const labelLine = (
  labels: GenerationParts['labels'],
  written: (value: string, key: string) => string
): string =>
  `LABEL ${Object.entries(labels)
    .map(([key, value]) => `${key}=${written(value, key)}`)
    .join(' ')}`

const step = (text: string, sourceLine: number): Omit<GeneratedStep, 'line'> => ({
  text,
  shown: text,
  sourceLine
})

function fromStep({ from, base }: PlannedStage, { imageId }: GenerationParts): Omit<GeneratedStep, 'line'> {
  const platform =
    base.kind === 'image' && base.use.platform !== undefined ? [`--platform=${base.use.platform}`] : []
  const as = from.name === undefined ? [] : ['AS', from.name]
  const image = base.kind === 'image' ? imageId(base.use) : base.kind === 'stage' ? base.name : 'scratch'
  const shown = base.kind === 'image' ? base.use.reference : image
  return {
    text: ['FROM', ...platform, image, ...as].join(' '),
    shown: ['FROM', ...platform, shown, ...as].join(' '),
    sourceLine: from.line
  }
}

/** With names and addresses replaced by what they stand for. */
function handedOver({ instruction, source }: PlannedInstruction, parts: GenerationParts): StageInstruction {
  const from =
    source === undefined ? undefined : source.kind === 'stage' ? source.from : parts.imageId(source.use)
  const { line } = instruction
  if (instruction.kind === 'copy') {
    const fetched = parts.remoteFiles.get(instruction)
    // What is fetched is not unpacked, as ADD would do with a file of the context.
    if (fetched !== undefined) return { ...instruction, ...fetched, keyword: 'COPY', isJson: true }
    return { ...withoutAddress(instruction, line), ...(from !== undefined && { from }) }
  }
  if (instruction.kind !== 'onbuild' || instruction.trigger.kind !== 'copy') return instruction
  // Nothing can be fetched now for a build to come.
  return {
    kind: 'onbuild',
    trigger: { ...withoutAddress(instruction.trigger, line), ...(from !== undefined && { from }) }
  }
}

function withoutAddress(copy: CopyInstruction, line: number): CopyInstruction {
  const [address] = addressesIn(copy, line)
  if (address !== undefined) throw new BadDockerfile(line, notFetched(address))
  return copy
}
