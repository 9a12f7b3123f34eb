import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Which places of a file a run came by: offsets into the source, each with whether it was executed. */
export type CameBy = ReadonlyMap<number, boolean>

interface ScriptCoverage {
  readonly url: string
  readonly functions: readonly { readonly ranges: readonly Range[] }[]
}
interface Range {
  readonly startOffset: number
  readonly endOffset: number
  readonly count: number
}
interface Report {
  readonly result: readonly ScriptCoverage[]
  readonly 'source-map-cache'?: Readonly<
    Record<string, { readonly lineLengths: readonly number[]; readonly data: { mappings: string } | null }>
  >
}

/**
 * Reads what V8 wrote (`NODE_V8_COVERAGE`) of all processes and threads of one test. A process that was killed wrote
 * nothing, so what is missing here may still have been executed.
 */
export function readCoverage(
  directory: string,
  root: string,
  sourceOf: (file: string) => string | undefined
): Map<string, CameBy> {
  const files = new Map<string, Map<number, boolean>>()
  for (const name of readdirSync(directory)) {
    const report = readReport(join(directory, name))
    for (const { url, functions } of report?.result ?? []) {
      if (!url.startsWith('file:') || url.includes('?')) continue
      const path = fileURLToPath(url)
      if (!path.startsWith(`${root}/`)) continue
      const file = path.slice(root.length + 1)
      const source = sourceOf(file)
      const map = report?.['source-map-cache']?.[url]
      if (source === undefined || !map?.data) continue
      const places = files.get(file) ?? new Map<number, boolean>()
      files.set(file, places)
      const isExecuted = executed(functions)
      for (const [generated, original] of offsets(map.data.mappings, map.lineLengths, source))
        places.set(original, (places.get(original) ?? false) || isExecuted(generated))
    }
  }
  return files
}

/** Whether a run came by the place, or by what is nearest before it. */
export function hasComeBy(places: CameBy | undefined, offset: number): boolean {
  let nearest = -1
  for (const at of places?.keys() ?? []) if (at <= offset && at > nearest) nearest = at
  return places?.get(nearest) ?? false
}

function readReport(path: string): Report | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Report
  } catch {
    // Its process was killed while it wrote.
    return null
  }
}

/** The innermost range around a place counts; ranges lie within each other. */
function executed(functions: ScriptCoverage['functions']): (offset: number) => boolean {
  const ranges = functions
    .flatMap(one => one.ranges)
    .sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset))
  return offset =>
    (ranges.find(range => range.startOffset <= offset && offset < range.endOffset)?.count ?? 0) > 0
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The pairs of a source map of one source, lines and columns made offsets. */
function* offsets(
  mappings: string,
  lineLengths: readonly number[],
  source: string
): Generator<[generated: number, original: number]> {
  const starts = [0]
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) starts.push(at + 1)
  let lineStart = 0
  let [line, column] = [0, 0]
  for (const [index, segments] of mappings.split(';').entries()) {
    let generated = 0
    for (const segment of segments === '' ? [] : segments.split(',')) {
      const [across = 0, , down = 0, along = 0] = numbers(segment)
      generated += across
      line += down
      column += along
      yield [lineStart + generated, (starts[line] ?? 0) + column]
    }
    lineStart += (lineLengths[index] ?? 0) + 1
  }
}

/** Base 64, six bits a digit, the sign in the lowest bit of the whole. */
function numbers(segment: string): number[] {
  const found: number[] = []
  let [value, shift] = [0, 0]
  for (const character of segment) {
    const digit = digits.indexOf(character)
    value += (digit & 31) << shift
    shift += 5
    if ((digit & 32) !== 0) continue
    found.push((value & 1) === 1 ? -(value >> 1) : value >> 1)
    value = 0
    shift = 0
  }
  return found
}
