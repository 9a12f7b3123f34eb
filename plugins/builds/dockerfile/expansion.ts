import { quoted } from './bad-dockerfile.js'
import type { Escape } from './characters.js'
import type { Refuse } from './words.js'

export type Variables = Pick<ReadonlyMap<string, string>, 'get'>

/** What is made of the pieces of a word: its text, or how long that can be. */
export interface Meaning<T> {
  /** Of characters that stand for themselves. */
  plain(text: string): T
  /** Of a variable; of '' when it is not set. */
  variable(name: string): T
  join(parts: readonly T[]): T
  /** `${NAME:-word}` */
  otherwise(value: T, word: T): T
  /** `${NAME:+word}` */
  instead(value: T, word: T): T
}

interface Reading<T> {
  readonly text: string
  readonly meaning: Meaning<T>
  readonly escapeChar: Escape
  readonly refuse: Refuse
}
interface Piece<T> {
  readonly value: T
  readonly next: number
}

const mostNested = 8

/** Of a word, as of an instruction; the time that the engine takes for one grows with its square. */
export const longestWord = 65_000

const longestTogether = 2 ** 20

/** How long the words of one Dockerfile may become all together: a few lines can double what they hold, again and again. */
export class ExpansionBudget {
  #used = 0

  take(characters: number, refuse: Refuse): void {
    this.#used += characters
    if (this.#used > longestTogether)
      refuse(
        `the words of this Dockerfile become longer than ${longestTogether} characters with their variables put in: shorten the values of its ARGs and ENVs, or move what is long into a file of the repository`
      )
  }
}

interface Expansion {
  readonly variables: Variables
  readonly escapeChar: Escape
  readonly budget: ExpansionBudget
  readonly refuse: Refuse
}

/**
 * A word with its variables, quotes and escapes put into effect, as the engine does it: `$NAME`, `${NAME}`,
 * `${NAME:-else}` and `${NAME:+if}`; what is not set is empty. Other forms, which engines know or do not, are refused,
 * and so is what becomes too long.
 */
export function expandWord(text: string, { variables, escapeChar, budget, refuse }: Expansion): string {
  let length = 0
  const counted = (piece: string): string => {
    length += piece.length
    if (length > longestWord)
      refuse(
        `${quoted(text)} becomes longer than ${longestWord} characters with its variables put in: shorten it or what its variables hold`
      )
    budget.take(piece.length, refuse)
    return piece
  }
  const meaning: Meaning<string> = {
    plain: counted,
    variable: name => counted(variables.get(name) ?? ''),
    join: parts => parts.join(''),
    otherwise: (value, word) => (value === '' ? word : value),
    instead: (value, word) => (value === '' ? '' : word)
  }
  return readWord(text, meaning, escapeChar, refuse)
}

/** Reads a word in linear time, in the forms that `expandWord` knows. */
export function readWord<T>(text: string, meaning: Meaning<T>, escapeChar: Escape, refuse: Refuse): T {
  return readUntil({ text, meaning, escapeChar, refuse }, 0, undefined, 0).value
}

function readUntil<T>(
  reading: Reading<T>,
  from: number,
  stop: '}' | '"' | undefined,
  depth: number
): Piece<T> {
  const { text, meaning, escapeChar, refuse } = reading
  const parts: T[] = []
  const isQuoted = stop === '"'
  let at = from
  while (at < text.length) {
    const character = text.charAt(at)
    if (character === stop) return { value: meaning.join(parts), next: at + 1 }
    let piece: Piece<T>
    if (character === '$') piece = variable(reading, at + 1, depth)
    else if (character === escapeChar) piece = plain(meaning, escaped(text, at, escapeChar, isQuoted))
    else if (character === '"') piece = readUntil(reading, at + 1, '"', depth)
    else if (character === "'" && !isQuoted) piece = plain(meaning, literal(reading, at + 1))
    else piece = plain(meaning, { value: character, next: at + 1 })
    parts.push(piece.value)
    at = piece.next
  }
  return stop === undefined
    ? { value: meaning.join(parts), next: at }
    : refuse(`${quoted(text)} lacks a closing ${stop}: add it`)
}

const plain = <T>(meaning: Meaning<T>, { value, next }: Piece<string>): Piece<T> => ({
  value: meaning.plain(value),
  next
})

function escaped(text: string, at: number, escapeChar: Escape, isQuoted: boolean): Piece<string> {
  const next = text[at + 1]
  if (next === undefined) return { value: '', next: at + 1 }
  // Between double quotes it is for these alone, and stands for itself before others.
  return isQuoted && next !== '"' && next !== '$' && next !== escapeChar
    ? { value: escapeChar, next: at + 1 }
    : { value: next, next: at + 2 }
}

function literal<T>({ text, refuse }: Reading<T>, from: number): Piece<string> {
  const end = text.indexOf("'", from)
  return end < 0
    ? refuse(`${quoted(text)} lacks a closing ': add it`)
    : { value: text.slice(from, end), next: end + 1 }
}

function variable<T>(reading: Reading<T>, from: number, depth: number): Piece<T> {
  const { text, meaning, refuse } = reading
  const isBraced = text[from] === '{'
  const start = isBraced ? from + 1 : from
  const end = skipName(text, start)
  if (end === start)
    return refuse(`${quoted(text)} has a $ before something that is no name of a variable: write \${NAME}`)
  // Engines take it into the name: it would be another variable.
  if (text.charCodeAt(end) > 0x7f)
    return refuse(`${quoted(text)} has a letter beyond ASCII behind the name of a variable: write \${NAME}`)
  const value = meaning.variable(text.slice(start, end))
  if (!isBraced) return { value, next: end }
  if (text[end] === '}') return { value, next: end + 1 }
  const operator = text.slice(end, end + 2)
  if ((operator !== ':-' && operator !== ':+') || depth >= mostNested) {
    return refuse(
      `${quoted(text)} uses a form of variable that is not known here: write \${NAME}, \${NAME:-otherwise} or \${NAME:+instead}`
    )
  }
  const word = readUntil(reading, end + 2, '}', depth + 1)
  return {
    value: operator === ':-' ? meaning.otherwise(value, word.value) : meaning.instead(value, word.value),
    next: word.next
  }
}

function skipName(text: string, from: number): number {
  let at = from
  while (/\w/.test(text.charAt(at)) && !(at === from && /\d/.test(text.charAt(at)))) at++
  return at
}
