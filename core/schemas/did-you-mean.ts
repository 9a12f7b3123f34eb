/** Letters that may differ from a known name: three for `contributes`, which is written as `contributions`. */
const farthest = (candidate: string): number => Math.max(2, Math.floor(candidate.length / 3))
const longest = 60

/** `"databse" is unknown; did you mean "database"? Known are database, jobs` */
export function unknownName(name: string, known: readonly string[]): string {
  const [best] = known
    .map(candidate => ({ candidate, steps: distance(name.slice(0, longest), candidate) }))
    .filter(({ candidate, steps }) => steps <= farthest(candidate))
    .sort((a, b) => a.steps - b.steps)
  const hint = best === undefined ? '' : `; did you mean "${best.candidate}"?`
  return `"${name.slice(0, longest)}" is unknown${hint === '' ? ';' : hint} ${known.length === 0 ? 'there are none to give' : `known are ${known.join(', ')}`}`
}

/** How many letters have to be added, taken away or replaced (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      next.push(
        Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === b[j] ? 0 : 1))
      )
    }
    row = next
  }
  return row[b.length] ?? 0
}
