import { BadDockerfile, quoted } from './bad-dockerfile.js'
import { type CopyInstruction, canExpand } from './instruction.js'
import type { ImageUse, Plan } from './plan.js'
import type { StageVariables } from './stage-variables.js'
import { type BaseImage, walkStages } from './stage-walk.js'

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

/**
 * The ADDs for which something is to be fetched before the build, with ARG and ENV put into their addresses where
 * those are certain. Throws `BadDockerfile` for addresses that nothing here fetches.
 */
export function remoteAdds(
  plan: Plan,
  buildArgs: Readonly<Record<string, string>>,
  baseImage: (use: ImageUse) => BaseImage
): readonly RemoteAdd[] {
  const adds: RemoteAdd[] = []
  for (const { stage, variables } of walkStages(plan, buildArgs, baseImage)) {
    for (const { instruction } of stage.instructions) {
      variables.apply(instruction)
      if (instruction.kind !== 'copy') continue
      const addresses = addressesIn(instruction, instruction.line, variables)
      if (addresses.length > 0) adds.push({ instruction, addresses })
    }
  }
  return adds
}

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
