import { posix } from 'node:path'

/** One place of a pattern: the characters that lead to the next place, and what may pass meanwhile. */
export interface Place {
  /** Code points, first and last of each range. */
  readonly ranges: ReadonlyArray<readonly [first: number, last: number]>
  /** Every character leads on but those in `ranges`. */
  readonly isNegated: boolean
  /** What it lets pass without leaving: nothing, a name, anything on one line, anything. */
  readonly passes: 'nothing' | 'name' | 'line' | 'all'
  /** Left without a character: never, only when nothing has passed, always. */
  readonly isOptional: 'never' | 'untouched' | 'always'
}

export interface IgnorePattern {
  /** It takes files in again (`!`). */
  readonly isException: boolean
  readonly places: readonly Place[]
}

/** Why a pattern cannot be used. */
export class BadPattern extends Error {}

const byteOrderMark = '\uFEFF'
const slash: Place['ranges'] = [[0x2f, 0x2f]]
const place = (changes: Partial<Place>): Place => ({
  ranges: [],
  isNegated: false,
  passes: 'nothing',
  isOptional: 'never',
  ...changes
})

/** Reads an ignore file by Docker's rules. */
export function parseIgnoreFile(text: string): IgnorePattern[] {
  const lines = (text.startsWith(byteOrderMark) ? text.slice(1) : text).split('\n')
  // A comment begins with the line: after a space, the sign belongs to a name.
  return lines
    .filter(line => !line.startsWith('#'))
    .map(trim)
    .filter(line => line !== '')
    .flatMap(parseLine)
}

/** Docker cleans the path, and then the line with the cleaned path in it. */
function parseLine(line: string): IgnorePattern[] {
  const mark = line.startsWith('!') ? '!' : ''
  const path = clean(trim(line.slice(mark.length)))
  const pattern = clean(trim(mark + (path.length > 1 ? path.replace(/^\//, '') : path)))
  if (pattern === '') return []
  if (pattern === '!') throw new BadPattern(`the line ${line.slice(0, 100)} names nothing to take in again`)
  const isException = pattern.startsWith('!')
  return [{ isException, places: placesOf(isException ? pattern.slice(1) : pattern) }]
}

/** `./a//b/` as `a/b`. */
function clean(path: string): string {
  const normal = path === '' ? '' : posix.normalize(path)
  return normal.length > 1 ? normal.replace(/\/$/, '') : normal
}

function placesOf(pattern: string): Place[] {
  const characters = [...pattern]
  const passes = crossesLines(pattern) ? 'all' : 'line'
  const bad = (reason: string) => new BadPattern(`the pattern ${pattern.slice(0, 100)} ${reason}`)
  const places: Place[] = []
  let at = 0

  const escaped = (): number => {
    if (characters[at] === '\\') at++
    const code = characters[at++]?.codePointAt(0)
    if (code === undefined) throw bad('ends in a backslash: write two for the character itself')
    return code
  }
  const charactersOf = (): Place => {
    const isNegated = characters[at] === '^'
    if (isNegated) at++
    const ranges: Array<readonly [number, number]> = []
    const bound = (): number => {
      if (at >= characters.length || characters[at] === '-' || characters[at] === ']')
        throw bad('has a [ without its ], or a - or ] in it that needs a backslash')
      return escaped()
    }
    while (characters[at] !== ']' || ranges.length === 0) {
      const first = bound()
      const isRange = characters[at] === '-'
      if (isRange) at++
      const last = isRange ? bound() : first
      if (last < first) throw bad('has a range that runs backwards')
      ranges.push([first, last])
    }
    at++
    return place({ ranges, isNegated })
  }
  /** `**`, with the slash after it. */
  const anywhere = (): Place[] => {
    at += 2
    if (characters[at] === '/') at++
    if (at === characters.length || (passes === 'all' && characters[at - 1] !== '/'))
      return [place({ passes, isOptional: 'always' })]
    // Twice is no more than once, and what can be left without a character stays short.
    return places.at(-1)?.isOptional === 'untouched'
      ? []
      : [place({ ranges: slash, passes, isOptional: 'untouched' })]
  }

  while (at < characters.length) {
    if (characters[at] === '*' && characters[at + 1] === '*') {
      places.push(...anywhere())
    } else if (characters[at] === '*') {
      at++
      places.push(place({ passes: 'name', isOptional: 'always' }))
    } else if (characters[at] === '?') {
      at++
      places.push(place({ ranges: slash, isNegated: true }))
    } else if (characters[at] === '[') {
      at++
      places.push(charactersOf())
    } else {
      const code = escaped()
      places.push(place({ ranges: [[code, code]] }))
    }
  }
  return places
}

/** Docker compares text where a pattern is plain but for `**` at its beginning or its end: `**x` ends in x, whatever is before it. */
function crossesLines(pattern: string): boolean {
  const isPlain = (text: string) => !/[*?[\]\\]/.test(text)
  return (
    (pattern.startsWith('**') && isPlain(pattern.slice(2))) ||
    (pattern.endsWith('**') && isPlain(pattern.slice(0, -2)))
  )
}

const space = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

// By hand: an expression for the end of a line begins again at every space.
function trim(line: string): string {
  let from = 0
  let to = line.length
  while (from < to && space.test(line.charAt(from))) from++
  while (to > from && space.test(line.charAt(to - 1))) to--
  return line.slice(from, to)
}
