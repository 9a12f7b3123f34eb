import { BadDockerfile, quoted } from './bad-dockerfile.js'
import { type Escape, isBlank, isControl, isWideSpace, nameOf, skipBlanks, trimEnd } from './characters.js'

/** An instruction with its continuation lines joined, as the engine joins them. */
export interface LogicalLine {
  readonly text: string
  /** Where it begins, from 1. */
  readonly line: number
}

interface DockerfileLines {
  readonly escapeChar: Escape
  /** What `# syntax=` names; null without one. */
  readonly syntax: string | null
  readonly lines: readonly LogicalLine[]
}

/** The engine's own limit for one line, which a joined instruction is. */
const mostLineBytes = 65_000

/**
 * Reads the lines of a Dockerfile: directives, comments, and instructions with what continues them. In linear time,
 * and strictly: where engines differ, or a reader would see something else than the engine, the line is refused.
 */
export function readLines(text: string): DockerfileLines {
  const physical = text.split('\n').map(line => (line.endsWith('\r') ? line.slice(0, -1) : line))
  const { escapeChar, syntax, count } = readDirectives(physical)
  const lines: LogicalLine[] = []
  let parts: string[] = []
  let start = 0
  const complete = (): void => {
    if (parts.length > 0) lines.push(join(parts, start))
    parts = []
  }
  for (let index = count; index < physical.length; index++) {
    const content = physical[index] ?? ''
    const first = skipBlanks(content, 0)
    if (first === content.length || content[first] === '#') continue
    checkCharacters(content, first, index + 1)
    if (parts.length === 0) start = index + 1
    const body = trimEnd(content)
    const continues = body.endsWith(escapeChar)
    if (continues && body.at(-2) === escapeChar) {
      throw new BadDockerfile(
        index + 1,
        `it ends in two escape characters (${escapeChar}${escapeChar}), which engines read in different ways: write one of them for an instruction that goes on, or put something after them`
      )
    }
    parts.push(continues ? body.slice(0, -1) : content)
    if (!continues) complete()
  }
  complete()
  return { escapeChar, syntax, lines }
}

function checkCharacters(content: string, first: number, line: number): void {
  if (isWideSpace(content[first]))
    throw new BadDockerfile(
      line,
      `it begins with the character ${nameOf(content.charAt(first))}, which looks like a space or like nothing: remove it`
    )
  for (let at = 0; at < content.length; at++) {
    if (isControl(content.charCodeAt(at))) {
      throw new BadDockerfile(
        line,
        `it holds the control character ${nameOf(content.charAt(at))}${content[at] === '\r' ? ' (a carriage return that ends no line)' : ''}: remove it, or write it as an escape of the command that needs it`
      )
    }
  }
}

function join(parts: readonly string[], line: number): LogicalLine {
  const text = parts.join('')
  if (Buffer.byteLength(text) > mostLineBytes) {
    throw new BadDockerfile(
      line,
      `the instruction is longer than ${mostLineBytes} bytes with its continuation lines, more than the engine takes: move what it does into a file of the repository`
    )
  }
  const keyword = keywordOf(text)
  const begun = keywordOf(parts[0] ?? '')
  if (keyword === '' || keyword !== begun) {
    throw new BadDockerfile(
      line,
      `${quoted(text.trimStart())} does not begin with an instruction on a line of its own: write the instruction (RUN, COPY, …) and a space, all on the first line`
    )
  }
  return { text, line }
}

/** The first word; '' when it is not letters alone. */
function keywordOf(text: string): string {
  const from = skipBlanks(text, 0)
  let to = from
  while (isLetter(text.charCodeAt(to))) to++
  return to === text.length || isBlank(text[to]) ? text.slice(from, to) : ''
}

const isLetter = (code: number): boolean => (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)

const directiveNames = ['escape', 'syntax', 'check'] as const
type DirectiveName = (typeof directiveNames)[number]

/** Directives stand before everything else, comments and empty lines included. */
function readDirectives(lines: readonly string[]): {
  readonly escapeChar: Escape
  readonly syntax: string | null
  readonly count: number
} {
  const found = new Map<DirectiveName, string>()
  let count = 0
  for (const content of lines) {
    const directive = directiveOf(content)
    if (directive === undefined) break
    count++
    if (found.has(directive.name))
      throw new BadDockerfile(count, `the directive ${directive.name} is given twice: leave one`)
    found.set(directive.name, directive.value)
    if (directive.name === 'escape' && directive.value !== '\\' && directive.value !== '`') {
      throw new BadDockerfile(
        count,
        `the escape character cannot be ${quoted(directive.value)}: write \\ or \``
      )
    }
  }
  return { escapeChar: found.get('escape') === '`' ? '`' : '\\', syntax: found.get('syntax') ?? null, count }
}

function directiveOf(content: string): { readonly name: DirectiveName; readonly value: string } | undefined {
  const from = skipBlanks(content, 0)
  const equals = content.indexOf('=', from)
  if (content[from] !== '#' || equals < 0) return undefined
  const written = trimEnd(content.slice(skipBlanks(content, from + 1), equals)).toLowerCase()
  const name = directiveNames.find(known => known === written)
  const value = trimEnd(content.slice(skipBlanks(content, equals + 1)))
  return name === undefined || value === '' ? undefined : { name, value }
}
