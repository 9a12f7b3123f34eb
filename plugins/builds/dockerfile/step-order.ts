import type { StageInstruction } from './instruction.js'

/** What only notes something in the image: it changes no file, and no COPY or ADD does anything else for it. */
const notes: ReadonlySet<string> = new Set([
  'CMD',
  'ENTRYPOINT',
  'EXPOSE',
  'HEALTHCHECK',
  'STOPSIGNAL',
  'USER'
])

const isNote = (instruction: StageInstruction): boolean =>
  instruction.kind === 'plain' && notes.has(instruction.keyword)

/**
 * The instructions of a stage so that the cache serves most: notes before the copies that they follow. Files change with each
 * commit and notes hardly ever, and the engine takes as long for a note as for a small copy. Copies and notes keep their own
 * order, and nothing passes what could tell the difference: a command, a variable, another working directory.
 */
export function inCacheOrder<T extends StageInstruction>(instructions: readonly T[]): readonly T[] {
  const ordered: T[] = []
  let copies: T[] = []
  const writeCopies = (): void => {
    for (const copy of copies) ordered.push(copy)
    copies = []
  }
  for (const instruction of instructions) {
    if (instruction.kind === 'copy') copies.push(instruction)
    else {
      if (!isNote(instruction)) writeCopies()
      ordered.push(instruction)
    }
  }
  writeCopies()
  return ordered
}
