/**
 * A Dockerfile begins with lines of `# key=value`, of which `syntax` has BuildKit fetch a front-end and run it: a program of
 * strangers that may ask the engine for what no Dockerfile can say. Docker's only add to what the engine's own knows, so that
 * without it a build needs no download either.
 */

const longestDirective = 1000

interface Directives {
  readonly syntax: string | null
  readonly escape: string | null
}

/** As a reader takes them; nothing is kept out by this. */
function directivesOf(lines: readonly string[]): Directives {
  const found = new Map<string, string>()
  for (const [at, line] of lines.entries()) {
    if (at === 0 && line.startsWith('#!')) continue
    const text = line.slice(0, longestDirective)
    const equals = text.indexOf('=')
    if (!isComment(text) || equals < 0) break
    const key = text
      .slice(0, equals)
      .trim()
      .replace(/^#|^\/\//, '')
      .trim()
      .toLowerCase()
    if (!/^[a-z][a-z0-9]*$/.test(key)) break
    if (!found.has(key)) found.set(key, text.slice(equals + 1).trim())
  }
  return { syntax: found.get('syntax') ?? null, escape: found.get('escape') ?? null }
}

const isComment = (line: string): boolean => {
  const text = line.trimStart()
  return text.startsWith('#') || text.startsWith('//')
}

const bom = '\uFEFF'
const linesOf = (text: string): string[] => (text.startsWith(bom) ? text.slice(1) : text).split('\n')

/**
 * The same without a front-end. Directives end with the first line that is none, so an empty comment in the first line ends
 * them, whatever the engine takes for one; an `escape` comes before it. Lines keep their numbers.
 */
export function withoutSyntax(text: string): string {
  const lines = linesOf(text)
  const { escape: character } = directivesOf(lines)
  const kept = character === '`' || character === '\\' ? [`# escape=${character}`, '#'] : ['#']
  for (const [at, line] of kept.entries()) {
    // An instruction ends them, too.
    if (!isComment(lines[at] ?? '')) break
    lines[at] = line
  }
  // It may also be named by a file that is JSON.
  const first = lines.findIndex(line => line.trim() !== '')
  if (lines[first]?.trimStart().startsWith('{')) lines[first] = `#${lines[first]}`
  return lines.join('\n')
}

/** The front-end that it names; null without one. */
export const syntaxOf = (text: string): string | null => directivesOf(linesOf(text)).syntax

/** What ends a line that goes on in the next one. */
export const escapeOf = (text: string): string => (directivesOf(linesOf(text)).escape === '`' ? '`' : '\\')

/** What a front-end takes for its own settings when it is given as a build argument; one of them is the front-end itself. */
export const isFrontEndSetting = (name: string): boolean => name.toUpperCase().startsWith('BUILDKIT_')
