import { quoted } from './bad-dockerfile.js'
import type { Escape } from './characters.js'
import type { Refuse } from './words.js'

export type Variables = Pick<ReadonlyMap<string, string>, 'get'>

interface Reading {
  readonly text: string
  readonly variables: Variables
  readonly escapeChar: Escape
  readonly refuse: Refuse
}
interface Piece {
  readonly value: string
  readonly next: number
}

const mostNested = 8

/**
 * A word with its variables, quotes and escapes put into effect, as the engine does it: `$NAME`, `${NAME}`,
 * `${NAME:-else}` and `${NAME:+if}`; what is not set is empty. Other forms, which engines know or do not, are refused.
 */
export function expandWord(text: string, variables: Variables, escapeChar: Escape, refuse: Refuse): string {
  return readUntil({ text, variables, escapeChar, refuse }, 0, undefined, 0).value
}

function readUntil(reading: Reading, from: number, stop: '}' | '"' | undefined, depth: number): Piece {
  const { text, escapeChar, refuse } = reading
  const parts: string[] = []
  const isQuoted = stop === '"'
  let at = from
  while (at < text.length) {
    const character = text.charAt(at)
    if (character === stop) return { value: parts.join(''), next: at + 1 }
    let piece: Piece = { value: character, next: at + 1 }
    if (character === '$') piece = variable(reading, at + 1, depth)
    else if (character === escapeChar) piece = escaped(text, at, escapeChar, isQuoted)
    else if (character === '"') piece = readUntil(reading, at + 1, '"', depth)
    else if (character === "'" && !isQuoted) piece = literal(reading, at + 1)
    parts.push(piece.value)
    at = piece.next
  }
  return stop === undefined
    ? { value: parts.join(''), next: at }
    : refuse(`${quoted(text)} lacks a closing ${stop}: add it`)
}

function escaped(text: string, at: number, escapeChar: Escape, isQuoted: boolean): Piece {
  const next = text[at + 1]
  if (next === undefined) return { value: '', next: at + 1 }
  // Between double quotes it is for these alone, and stands for itself before others.
  return isQuoted && next !== '"' && next !== '$' && next !== escapeChar
    ? { value: escapeChar, next: at + 1 }
    : { value: next, next: at + 2 }
}

function literal({ text, refuse }: Reading, from: number): Piece {
  const end = text.indexOf("'", from)
  return end < 0
    ? refuse(`${quoted(text)} lacks a closing ': add it`)
    : { value: text.slice(from, end), next: end + 1 }
}

function variable(reading: Reading, from: number, depth: number): Piece {
  const { text, variables, refuse } = reading
  const isBraced = text[from] === '{'
  const start = isBraced ? from + 1 : from
  const end = skipName(text, start)
  if (end === start)
    return refuse(`${quoted(text)} has a $ before something that is no name of a variable: write \${NAME}`)
  const value = variables.get(text.slice(start, end)) ?? ''
  if (!isBraced) return { value, next: end }
  if (text[end] === '}') return { value, next: end + 1 }
  const operator = text.slice(end, end + 2)
  if ((operator !== ':-' && operator !== ':+') || depth >= mostNested) {
    return refuse(
      `${quoted(text)} uses a form of variable that is not known here: write \${NAME}, \${NAME:-otherwise} or \${NAME:+instead}`
    )
  }
  const word = readUntil(reading, end + 2, '}', depth + 1)
  const isSet = value !== ''
  if (operator === ':+') return { value: isSet ? word.value : '', next: word.next }
  return { value: isSet ? value : word.value, next: word.next }
}

function skipName(text: string, from: number): number {
  let at = from
  while (/\w/.test(text.charAt(at)) && !(at === from && /\d/.test(text.charAt(at)))) at++
  return at
}
