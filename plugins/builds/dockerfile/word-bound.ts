import { BadDockerfile } from './bad-dockerfile.js'
import type { Escape } from './characters.js'
import { type Meaning, readWord } from './expansion.js'
import type { Refuse } from './words.js'

/** How long what variables hold can be, in bytes. */
export interface LengthsOfVariables {
  of(name: string): number
  /** Of whatever variable, for a name that is not read here as the engine reads it. */
  longest(): number
}

/**
 * As the engine goes over what is put in once more for each of these. Letters of every alphabet and the special
 * parameters of shells are names to it.
 */
const replacement = /\$\{(?:[@*#?$!-]|[\w\u0080-\uffff]*)\//g

/**
 * How many bytes a text can have once its variables are put in, whatever they hold. Nothing is put in for that. Forms
 * of variables that are not known here are counted as if everything that they name were put in.
 */
export function wordBound(text: string, lengths: LengthsOfVariables, escapeChar: Escape): number {
  if (!text.includes('$')) return Buffer.byteLength(text)
  const bound = knownBound(text, lengths, escapeChar)
  if (bound !== undefined) return bound
  let sum = Buffer.byteLength(text)
  for (const [, name = '', wide] of text.matchAll(/\$\{?(\w*)([^\0-\x7f])?/g))
    sum += wide === undefined && /^[A-Za-z_]/.test(name) ? lengths.of(name) : lengths.longest()
  return sum ** (1 + [...text.matchAll(replacement)].length)
}

function knownBound(text: string, lengths: LengthsOfVariables, escapeChar: Escape): number | undefined {
  const meaning: Meaning<number> = {
    plain: characters => Buffer.byteLength(characters),
    variable: name => lengths.of(name),
    join: parts => parts.reduce((sum, part) => sum + part, 0),
    otherwise: Math.max,
    instead: (_value, word) => word
  }
  try {
    return readWord(text, meaning, escapeChar, notKnown)
  } catch (error) {
    if (error instanceof BadDockerfile) return undefined
    throw error
  }
}

const notKnown: Refuse = reason => {
  throw new BadDockerfile(0, reason)
}
