import { quoted } from './bad-dockerfile.js'
import { blankSeparated, skipBlanks } from './characters.js'
import type { Flags } from './flags.js'
import type { CopyInstruction } from './instruction.js'
import type { Refuse } from './words.js'

const chownShape = /^[\w.${}:+-]+$/

/** What stands after the flags of a COPY or an ADD. */
export function parseCopy(
  keyword: 'COPY' | 'ADD',
  flags: Flags,
  text: string,
  refuse: Refuse
): CopyInstruction {
  const from = flags.get('from')
  if (from === '') refuse('--from is empty: name a stage or an image')
  const chown = flags.get('chown')
  if (chown !== undefined && !chownShape.test(chown))
    refuse(`--chown=${quoted(chown)} holds a character that no user or group has: write user:group`)
  const list = stringList(text, refuse)
  const paths = list ?? blankSeparated(text)
  const [destination, ...sources] = [paths.at(-1), ...paths.slice(0, -1)]
  if (destination === undefined || sources.length === 0)
    return refuse(`${keyword} needs a source and a destination: write ${keyword} <source> <destination>`)
  return {
    kind: 'copy',
    keyword,
    ...(from !== undefined && { from }),
    flags: chown === undefined ? [] : [`--chown=${chown}`],
    sources,
    destination,
    isJson: list !== undefined
  }
}

/** The JSON form of an instruction; undefined when it is not in that form. */
export function stringList(text: string, refuse: Refuse): readonly string[] | undefined {
  if (text[skipBlanks(text, 0)] !== '[') return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // A pattern or a command may begin with a bracket too.
    return undefined
  }
  if (!Array.isArray(value) || !value.every(entry => typeof entry === 'string'))
    return refuse(`${quoted(text)} is a list of something else than strings: put each word in double quotes`)
  return value
}
