import { BadDockerfile } from './bad-dockerfile.js'
import type { Dockerfile, Instruction, Stage } from './instruction.js'
import { readLines } from './logical-lines.js'
import { parseInstruction } from './parse-instruction.js'

/** The engine makes a container for nearly each of them; a file of more was not written by a person. */
export const mostInstructions = 2000
export const tooManyInstructions = `there are more than ${mostInstructions} instructions: put several commands into one RUN`

/** Reads a Dockerfile. Throws `BadDockerfile` for what is not understood, with its line. */
export function parseDockerfile(text: string): Dockerfile {
  const { escapeChar, syntax, lines } = readLines(text)
  const globals: Array<Dockerfile['globals'][number]> = []
  const stages: Array<Stage & { readonly instructions: Instruction[] }> = []
  for (const [count, logical] of lines.entries()) {
    if (count >= mostInstructions) throw new BadDockerfile(logical.line, tooManyInstructions)
    const instruction = parseInstruction(logical, escapeChar)
    const stage = stages.at(-1)
    if (instruction.kind === 'from') {
      const { kind: _, ...from } = instruction
      stages.push({ from, instructions: [] })
    } else if (stage !== undefined) {
      stage.instructions.push(instruction)
    } else if (instruction.kind === 'arg') {
      globals.push(instruction)
    } else {
      throw new BadDockerfile(
        logical.line,
        'the first instruction must be FROM, and only ARG may come before it: write FROM image above this line'
      )
    }
  }
  if (stages.length === 0)
    throw new BadDockerfile(
      1,
      'it holds no FROM (a Dockerfile cannot be empty): write FROM image, and what is to be done with it'
    )
  return { escapeChar, syntax, globals, stages }
}

/** The names that a Dockerfile declares with ARG, in any stage. */
export const declaredArguments = ({ globals, stages }: Dockerfile): ReadonlySet<string> =>
  new Set(
    [...globals, ...stages.flatMap(({ instructions }) => instructions)].flatMap(instruction =>
      instruction.kind === 'arg' ? instruction.declarations.map(({ name }) => name) : []
    )
  )
