/** As `# syntax=docker/dockerfile:1`. Spaces may stand at each place where they may. */
const directive = /^[ \t]*(?:#|\/\/)[ \t]*(\w+)[ \t]*=[ \t]*(\S.*)$/

/**
 * A Dockerfile without its `# syntax=`, which would have the build engine fetch a front-end and run it. Those of Docker
 * only add to what the engine's own knows, so that a build needs no download. Lines keep their numbers.
 */
export function withoutSyntax(text: string): string {
  const lines = text.split('\n')
  for (const [at, line] of lines.entries()) {
    const [, key] = directive.exec(line.slice(0, 1000)) ?? []
    if (key === undefined && !(at === 0 && line.startsWith('#!'))) break
    if (key?.toLowerCase() === 'syntax') lines[at] = '#'
  }
  return lines.join('\n')
}

/** What it names; null without one. */
export function syntaxOf(text: string): string | null {
  for (const [at, line] of text.split('\n', 50).entries()) {
    const [, key, value] = directive.exec(line.slice(0, 1000)) ?? []
    if (key === undefined && !(at === 0 && line.startsWith('#!'))) break
    if (key?.toLowerCase() === 'syntax') return (value ?? '').trim()
  }
  return null
}
