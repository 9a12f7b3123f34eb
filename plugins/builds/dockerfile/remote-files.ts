import { BadDockerfile, quoted } from './bad-dockerfile.js'
import { ExpansionBudget } from './expansion.js'
import { type CopyInstruction, canExpand } from './instruction.js'
import type { Base, ImageUse, Plan, PlannedStage } from './plan.js'
import { type ArgumentValues, type Inherited, StageVariables } from './stage-variables.js'

/** What an ADD would fetch: an address, in the widest sense in which any engine takes one. */
export const isAddress = (source: string): boolean =>
  /^(?:[a-z][a-z0-9+.-]*:\/\/|git@|git:|github\.com\/)/i.test(source)

/** It is one once its variables are put in. */
const looksLikeAddress = (source: string): boolean => isAddress(source.replace(/^["'\\`]+/, ''))

/** A repository is none, also where a plain file could be handed out under its address. */
const isFile = (address: string): boolean =>
  /^https?:\/\//i.test(address) && !/\.git\/?(?:[#?]|$)/i.test(address)

/** An ADD that fetches, and from where, in the order in which it names them. */
export interface RemoteAdd {
  readonly instruction: CopyInstruction & { readonly line: number }
  readonly addresses: readonly string[]
}

/** What of the images that are built upon tells which variables a stage has. */
export interface BaseImage {
  readonly environment?: Readonly<Record<string, string>>
  readonly onBuild?: readonly string[]
}

/**
 * The ADDs for which something is to be fetched before the build, with ARG and ENV put into their addresses where
 * those are certain. Throws `BadDockerfile` for addresses that nothing here fetches.
 */
export function remoteAdds(
  { dockerfile: { escapeChar }, globals, stages }: Plan,
  buildArgs: Readonly<Record<string, string>>,
  baseImage: (use: ImageUse) => BaseImage
): readonly RemoteAdd[] {
  const values: ArgumentValues = {
    buildArgs,
    globals: new Map(globals.map(({ name, value }) => [name, value]))
  }
  const budget = new ExpansionBudget()
  const ended = new Map<string, Inherited>()
  return stages.flatMap(({ from, base, instructions }) => {
    const variables = new StageVariables(inheritedFrom(base, ended, baseImage), values, escapeChar, budget)
    const adds = instructions.flatMap(({ instruction }) => {
      variables.apply(instruction)
      if (instruction.kind !== 'copy') return []
      const addresses = addressesIn(instruction, instruction.line, variables)
      return addresses.length === 0 ? [] : [{ instruction, addresses }]
    })
    if (from.name !== undefined)
      ended.set(from.name, setsByTrigger(instructions) ? undefined : variables.inherited)
    return adds
  })
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

/** The addresses of one instruction; empty when it takes files. Without `variables` nothing is put in. */
export function addressesIn(
  { keyword, sources: written }: CopyInstruction,
  line: number,
  variables?: StageVariables
): readonly string[] {
  const refuse = (reason: string): never => {
    throw new BadDockerfile(line, reason)
  }
  const sources =
    keyword === 'COPY' || variables === undefined
      ? written
      : written.map(source => {
          if (!canExpand(source)) return source
          return (
            variables.expand(source) ??
            (looksLikeAddress(source)
              ? refuse(
                  `the address ${quoted(source)} holds a variable whose value is not certain before the build: write the address out, or fetch it in a RUN step`
                )
              : source)
          )
        })
  const addresses = sources.filter(isAddress)
  const [first] = addresses
  if (first === undefined) return []
  if (keyword === 'COPY') return refuse(`COPY takes no address (${quoted(first)}): fetch it in a RUN step`)
  if (addresses.length < sources.length)
    return refuse('an ADD takes either addresses or files of the repository: write one ADD for each')
  const other = addresses.find(address => !isFile(address))
  return other === undefined ? addresses : refuse(notFetched(other))
}

export const notFetched = (address: string): string =>
  `ADD does not fetch ${quoted(address)}: fetch it in a RUN step, or put the file into the repository`
