/** What kind of value something is, for an error: `undefined`, `an object`, `a number`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  const type = typeof value
  return type === 'object' ? 'an object' : type === 'string' ? 'a text' : `a ${type}`
}

/**
 * What a contribution answered that says why something is refused: the sentence, or null where there is none. JavaScript
 * that returns nothing refuses nothing. Throws where it answered anything else, and names `what`:
 * `the deploy gate of the plugin "quota"`.
 */
export function refusalOf(answer: unknown, what: string): string | null {
  if (answer === null || answer === undefined) return null
  if (typeof answer === 'string' && answer.trim() !== '') return answer
  throw new TypeError(
    `${what} answered ${typeof answer === 'string' ? 'an empty text' : kindOf(answer)}; it takes a sentence that says why, or null`
  )
}
