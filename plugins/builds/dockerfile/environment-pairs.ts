import { type Escape, skipBlanks, skipWord } from './characters.js'
import { quotedWords, type Refuse } from './words.js'

/** What an ENV or a LABEL sets, as it is written: `A=1 B=2`, or the old form `A 1`. */
export function environmentPairs(
  text: string,
  escapeChar: Escape,
  refuse: Refuse
): ReadonlyArray<readonly [key: string, value: string]> {
  const end = skipWord(text, 0)
  if (!text.slice(0, end).includes('=')) return [[text.slice(0, end), text.slice(skipBlanks(text, end))]]
  return quotedWords(text, escapeChar, refuse).map(word => [
    word.slice(0, word.indexOf('=')),
    word.slice(word.indexOf('=') + 1)
  ])
}
