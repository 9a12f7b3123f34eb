/** A path in which `*` stands for any characters but a slash and `?` for one of them, as the sources of ADD and COPY have them. */
export class Wildcards {
  readonly #segments: ReadonlyArray<readonly string[]>

  constructor(pattern: string) {
    this.#segments = pattern.split('/').map(segment => [...segment])
  }

  match(path: string): boolean {
    const segments = path.split('/')
    return (
      segments.length === this.#segments.length &&
      this.#segments.every((pattern, index) => matchSegment(pattern, segments[index] ?? ''))
    )
  }
}

/** Goes back to the last star alone: an earlier one could find nothing that this one does not. */
function matchSegment(pattern: readonly string[], segment: string): boolean {
  const text = [...segment]
  let [at, from, star, starFrom] = [0, 0, -1, 0]
  while (from < text.length) {
    const wanted = pattern[at]
    if (wanted === '*') {
      star = at++
      starFrom = from
    } else if (wanted !== undefined && (wanted === '?' || wanted === text[from])) {
      at++
      from++
    } else if (star >= 0) {
      at = star + 1
      from = ++starFrom
    } else return false
  }
  return pattern.slice(at).every(character => character === '*')
}
