import { type Escape, isBlank, isWideSpace, nameOf, skipBlanks } from './characters.js'

/** Throws what is wrong, with its line. */
export type Refuse = (reason: string) => never

/**
 * The words of `a="x y" b\ c 'd'`, each as it is written, quotes and escapes included. Linear: every character
 * is looked at once.
 */
export function quotedWords(text: string, escapeChar: Escape, refuse: Refuse): string[] {
  const words: string[] = []
  for (let at = skipBlanks(text, 0); at < text.length; at = skipBlanks(text, at)) {
    const from = at
    while (at < text.length && !isBlank(text[at])) at = skipPiece(text, at, escapeChar, refuse)
    words.push(text.slice(from, at))
  }
  return words
}

/** One character, an escaped one, or what is in quotes. */
function skipPiece(text: string, at: number, escapeChar: Escape, refuse: Refuse): number {
  const character = text.charAt(at)
  if (isWideSpace(character))
    return refuse(
      `it holds ${nameOf(character)} outside of quotes, which looks like a space or like nothing: write a space`
    )
  if (character === escapeChar)
    return at + 1 < text.length
      ? at + 2
      : refuse(
          `it ends in the escape character ${escapeChar}: remove it, or write the character that it is for`
        )
  if (character !== '"' && character !== "'") return at + 1
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === character) return end + 1
    if (text[end] === escapeChar && character === '"') end++
  }
  return refuse(`a quote (${character}) is opened and not closed: close it, or put ${escapeChar} before it`)
}

/** A text as one word that stands for nothing but itself. */
export function quoteWord(text: string, escapeChar: Escape): string {
  if (/^[\w./:@+-]*$/.test(text)) return text
  return `"${text.replace(/["$\\`]/g, character => (character === '"' || character === '$' || character === escapeChar ? escapeChar + character : character))}"`
}

/** True when a shell, and engines newer than 20.10, would read the lines that follow as a document of this one. */
export function hasHeredoc(text: string): boolean {
  let quote = ''
  for (let at = 0, isWordStart = true; at < text.length; at++) {
    const character = text.charAt(at)
    if (isWordStart && quote === '' && isHeredocAt(text, at)) return true
    isWordStart = quote === '' && isBlank(character)
    if (character === '\\' && quote !== "'") at++
    else if (quote === '' && (character === '"' || character === "'")) quote = character
    else if (character === quote) quote = ''
  }
  return false
}

/** `<<EOF`, `<<-EOF`, `3<<EOF`; but neither `<<<`, nor `<<` alone. */
function isHeredocAt(text: string, at: number): boolean {
  while (text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++
  if (text[at] !== '<' || text[at + 1] !== '<') return false
  const next = text[at + 2] === '-' ? text[at + 3] : text[at + 2]
  return next !== undefined && next !== '<' && !isBlank(next)
}
