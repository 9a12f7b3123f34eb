import { mostInstructions } from '../dockerfile/parse-dockerfile.js'

const keyword =
  /^\W*(?:add|arg|cmd|copy|entrypoint|env|expose|from|healthcheck|label|maintainer|onbuild|run|shell|stopsignal|user|volume|workdir)\b/i

/**
 * Whether a Dockerfile may have more instructions than are built: the time that engines take for some of them grows with the cube of
 * their number. Each begins a line, whatever an engine takes for the end of the one before; lines that only look like one count as well.
 */
export function hasTooManyInstructions(text: string): boolean {
  let count = 0
  for (const line of text.split('\n')) if (keyword.test(line) && ++count > mostInstructions) return true
  return false
}
