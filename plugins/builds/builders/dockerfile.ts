/**
 * The names that a Dockerfile declares with ARG, in any stage. Continued lines are joined, comments between
 * them left out, as the engine does.
 */
export function declaredArguments (dockerfile: string): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { text } of instructionsOf(dockerfile)) {
    const [, declarations] = /^\s*ARG\s+(.*)$/is.exec(text) ?? []
    for (const word of wordsOf(declarations ?? '')) {
      const name = /^[A-Za-z_]\w*/.exec(word)?.[0]
      if (name !== undefined) names.add(name)
    }
  }
  return names
}

/**
 * The Dockerfile with a LABEL after each FROM, where every later step finds it in the cache and what a
 * failed build leaves behind carries it too. A stage that continues one before it has its labels already.
 */
export function labelDockerfile (dockerfile: string, labels: Readonly<Record<string, string>>): string {
  const label = `LABEL ${Object.entries(labels).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(' ')}`
  const lines = dockerfile.split('\n')
  const stages = new Set<string>()
  const result: string[] = []
  let copied = 0
  for (const { text, lastLine } of instructionsOf(dockerfile)) {
    const [, image = '', stage] = /^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/i.exec(text) ?? []
    if (stage !== undefined) stages.add(stage.toLowerCase())
    if (image === '' || (stages.has(image.toLowerCase()) && stage?.toLowerCase() !== image.toLowerCase())) continue
    // Line by line: a call takes no hundred thousand arguments.
    for (; copied <= lastLine && copied < lines.length; copied++) result.push(lines[copied] ?? '')
    result.push(label)
  }
  return [...result, ...lines.slice(copied)].join('\n')
}

interface Instruction {
  readonly text: string
  /** Counted from 0. */
  readonly lastLine: number
}

export function instructionsOf (dockerfile: string): Instruction[] {
  const escape = /^\s*#\s*escape\s*=\s*`\s*$/im.test(leadingComments(dockerfile)) ? '`' : '\\'
  const instructions: Instruction[] = []
  let pending = ''
  for (const [lastLine, line] of dockerfile.split('\n').entries()) {
    const text = line.trimEnd()
    if (text === '' || /^\s*#/.test(text)) continue
    if (text.endsWith(escape)) {
      pending += `${text.slice(0, -1)} `
    } else {
      instructions.push({ text: pending + text, lastLine })
      pending = ''
    }
  }
  return pending === '' ? instructions : [...instructions, { text: pending, lastLine: Infinity }]
}

// Parser directives stand before everything else.
const leadingComments = (dockerfile: string): string => /^(?:[ \t]*#.*(?:\r?\n|$))*/.exec(dockerfile)?.[0] ?? ''

/** `A="x y" B` as two words. No two alternatives begin alike: whoever can push writes this text. */
const wordsOf = (text: string): string[] => text.match(/(?:[^\s"']+|"(?:\\.|[^"\\])*"|'[^']*')+/g) ?? []
