import type { CopyInstruction } from './instruction.js'
import type { ImageUse, Plan } from './plan.js'
import { isAddress } from './remote-files.js'
import type { BaseImage } from './stage-walk.js'
import { readTrigger } from './triggers.js'

/** What may be any file. */
const anything = '*'

/** The sources of all ADDs, as they are written: of the Dockerfile, and of triggers that it sets or that its base images carry. */
export function addedFiles({ stages }: Plan, baseImage: (use: ImageUse) => BaseImage): readonly string[] {
  const sourcesOf = ({ keyword, sources }: CopyInstruction): readonly string[] =>
    keyword === 'ADD' ? sources.filter(source => !isAddress(source)) : []
  /** A trigger was checked before; one that cannot be read here may take anything. */
  const triggerSources = (text: string): readonly string[] => {
    const trigger = readTrigger(text)
    if (trigger === undefined) return [anything]
    return trigger.kind === 'copy' ? sourcesOf(trigger) : []
  }
  return stages.flatMap(({ base, instructions }) => [
    ...(base.kind === 'image' ? (baseImage(base.use).onBuild ?? []).flatMap(triggerSources) : []),
    ...instructions.flatMap(({ instruction }) => {
      if (instruction.kind === 'copy') return sourcesOf(instruction)
      return instruction.kind === 'onbuild' && instruction.trigger.kind === 'copy'
        ? sourcesOf(instruction.trigger)
        : []
    })
  ])
}
