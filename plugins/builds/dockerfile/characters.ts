export type Escape = '\\' | '`'

/** The engine ends words at these; every other white space is refused where it could be taken for them. */
export const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

const firstPrintable = 0x20
const deleteCode = 0x7f

/** All but the tab, which is a blank. */
export const isControl = (code: number): boolean =>
  (code < firstPrintable && code !== 0x09) || code === deleteCode

// What Go's unicode.IsSpace takes for white space beyond ASCII, and the byte order mark, which no eye sees.
const wideSpaces = /[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/
export const isWideSpace = (character: string | undefined): boolean =>
  character !== undefined && wideSpaces.test(character)

export const nameOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** Where the blanks that begin at `at` end. */
export function skipBlanks(text: string, at: number): number {
  while (isBlank(text[at])) at++
  return at
}

/** Where the word that begins at `at` ends. */
export function skipWord(text: string, at: number): number {
  while (at < text.length && !isBlank(text[at])) at++
  return at
}

// By hand, as everything here: an expression for the end of a line begins again at every blank.
export function trimEnd(text: string, isSpace = isBlank): string {
  let end = text.length
  while (end > 0 && isSpace(text[end - 1])) end--
  return text.slice(0, end)
}

/** The words between blanks, whatever they hold. */
export function blankSeparated(text: string): string[] {
  const words: string[] = []
  for (let at = skipBlanks(text, 0); at < text.length; ) {
    const end = skipWord(text, at)
    words.push(text.slice(at, end))
    at = skipBlanks(text, end)
  }
  return words
}
