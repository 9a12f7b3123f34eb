import { invalid } from './problems.js'

const field = 'start_command'
const howToHaveAShell = "put it in quotes, or write sh -c '…' where the image has a shell"
const shellSigns = '|&;<>()$`'

/** A start command as it is stored: as it was written, or null for the image's own. Throws a 400 that names it. */
export function parseStartCommand(text: string | null): string | null {
  const command = text?.trim() ?? ''
  if (command === '') return null
  const [program = ''] = wordsOf(command)
  if (program === '') throw invalid(field, 'names no program')
  const [, name] = /^(\w+)=/.exec(program) ?? []
  if (name !== undefined)
    throw invalid(
      field,
      `begins with ${name}=, which only a shell understands: set the variable ${name} of the application, or write env ${name}=… before the program`
    )
  return command
}

/**
 * The words of a start command, split as a shell splits them. What only a shell would understand is refused
 * rather than taken literally: the words mean the same with a shell and without.
 */
export function wordsOf(text: string): readonly string[] {
  if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(text)) throw invalid(field, 'holds control characters')
  const words: string[] = []
  let word: string | undefined
  let quote: "'" | '"' | undefined
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '\\' && quote !== "'") {
      const next = text.charAt(++at)
      if (next === '') throw invalid(field, 'ends with a backslash')
      // It continues the line.
      if (next === '\n') continue
      word = (word ?? '') + (quote === undefined || '$`"\\'.includes(next) ? next : sign + next)
    } else if (quote !== undefined) {
      if (sign === quote) quote = undefined
      else if (quote === '"' && '$`'.includes(sign)) throw forAShell(sign)
      else word = (word ?? '') + sign
    } else if (sign === "'" || sign === '"') {
      quote = sign
      word ??= ''
    } else if (sign === ' ' || sign === '\t') {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (sign === '\n') {
      throw invalid(field, 'is one command, and has a line break outside of quotes')
    } else {
      if (shellSigns.includes(sign)) throw forAShell(sign)
      word = (word ?? '') + sign
    }
  }
  if (quote !== undefined) throw invalid(field, `has a ${quote} that is not closed`)
  return word === undefined ? words : [...words, word]
}

const forAShell = (sign: string): Error =>
  invalid(field, `is started without a shell, which alone understands ${sign}: ${howToHaveAShell}`)
