import { BadDockerfile, quoted } from './bad-dockerfile.js'
import { type Escape, skipBlanks, skipWord } from './characters.js'
import { quotedWords, type Refuse } from './words.js'

/** By these the platform knows whose a thing is. */
const ownKeys: ReadonlySet<string> = new Set([
  'managed-by',
  'project-id',
  'application-id',
  'deployment-id',
  'database-id'
])
const isOwn = (key: string): boolean =>
  ownKeys.has(key.toLowerCase()) || key.toLowerCase().startsWith('busbar-')

const keyShape = /^[\w./:@+-]+$/

/**
 * `a=1 "b"="2 3"`, or the old form `a 1`. A key is never computed, neither by variables nor by quotes in it, so
 * that those of the platform can be refused by looking.
 */
export function labelText(text: string, escapeChar: Escape, line: number): string {
  const refuse: Refuse = reason => {
    throw new BadDockerfile(line, reason)
  }
  const check = (written: string): string => {
    const quote = written.charAt(0)
    const isQuoted = written.length > 2 && (quote === '"' || quote === "'") && written.endsWith(quote)
    const key = isQuoted ? written.slice(1, -1) : written
    if (!keyShape.test(key))
      return refuse(
        `${quoted(written)} cannot be the key of a LABEL: write letters, digits, and . _ - / without variables and escapes`
      )
    if (isOwn(key)) throw new BadDockerfile(line, key, 'label')
    return isQuoted ? `"${key}"` : key
  }
  const end = skipWord(text, 0)
  if (!text.slice(0, end).includes('=')) {
    if (end === text.length) return refuse(`LABEL ${quoted(text)} has no value: write key=value`)
    return `${check(text.slice(0, end))} ${text.slice(skipBlanks(text, end))}`
  }
  return quotedWords(text, escapeChar, refuse)
    .map(word => {
      const equals = word.indexOf('=')
      if (equals < 0)
        return refuse(
          `${quoted(word)} has no = in it: write key=value, and a value that holds spaces in quotes`
        )
      return `${check(word.slice(0, equals))}=${word.slice(equals + 1)}`
    })
    .join(' ')
}
