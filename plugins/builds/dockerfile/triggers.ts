import { BadDockerfile, quoted } from './bad-dockerfile.js'
import type { Escape } from './characters.js'
import { canExpand, type OnBuildInstruction } from './instruction.js'
import { readLines } from './logical-lines.js'
import { parseInstruction } from './parse-instruction.js'
import { requireStage, type StageScope } from './plan.js'
import { isAddress } from './remote-files.js'

/**
 * The engine reads a trigger anew when it carries it out, as text of its own; but it expands it with the escape
 * character of the Dockerfile. None is carried out where that would make a difference.
 */
export const triggerEscape = '\\'

/** The whole id of an image: no name can be made to mean it. */
const wholeId = /^sha256:[0-9a-f]{64}$/

/**
 * Checks the triggers of an image that is built upon, which the engine carries out as they are written. Answers the
 * ids of images that they copy from. Throws `BadDockerfile` with the line of the FROM.
 */
export function checkTriggers(
  triggers: readonly string[],
  image: string,
  scope: StageScope,
  line: number,
  escapeChar: Escape
): readonly string[] {
  return triggers.flatMap(text => {
    const trigger = checkedTrigger(text, image, line)
    if (escapeChar !== triggerEscape && /[\\`]/.test(text)) {
      throw new BadDockerfile(
        line,
        `${carries(image, text)}, which has another meaning under \`# escape=\`: remove that directive, or choose another base image`
      )
    }
    if (trigger.trigger.kind !== 'copy') return []
    const { from, keyword, sources } = trigger.trigger
    if (keyword === 'ADD' && sources.some(source => canExpand(source) || isAddress(source))) {
      throw new BadDockerfile(
        line,
        `${carries(image, text)}, which fetches from an address or could do so: write what it does into this Dockerfile`
      )
    }
    if (from === undefined) return []
    if (wholeId.test(from)) return [from]
    requireStage(from.toLowerCase(), trigger, scope, line)
    return []
  })
}

/** What a trigger of a base image does; undefined where that cannot be read. */
export function readTrigger(text: string): OnBuildInstruction['trigger'] | undefined {
  try {
    return checkedTrigger(text, '', 1).trigger
  } catch {
    return undefined
  }
}

const carries = (image: string, text: string): string =>
  `the image ${quoted(image)} carries the trigger ${quoted(text)}`

function checkedTrigger(text: string, image: string, line: number): OnBuildInstruction {
  try {
    const { lines } = readLines(text)
    const [only] = lines
    // On one line as it stands, so that nothing before or after the instruction is left out of what is checked.
    if (only === undefined || only.text !== text) throw new BadDockerfile(line, 'it is more than one line')
    const instruction = parseInstruction({ text: `ONBUILD ${text}`, line }, triggerEscape)
    if (instruction.kind === 'onbuild') return instruction
    throw new BadDockerfile(line, 'it is no trigger')
  } catch (error) {
    if (!(error instanceof BadDockerfile)) throw error
    const reason = error.fault === 'label' ? `it sets the label ${error.message}` : error.message
    throw new BadDockerfile(
      line,
      `${carries(image, text)}, which is not carried out here: ${reason}; choose another base image`
    )
  }
}
