import { escapeOf } from './dockerfile-syntax.js'

/**
 * Names in a Dockerfile that may be those of images: after FROM, `--from=` and `from=`, with the values of the ARGs before the
 * first FROM. It decides nothing: whatever the build engine reads instead, it holds nothing but what everybody may use. So names
 * that are missed are asked of their registry, and those too many stand for nothing.
 */
export function baseNames(text: string, buildArgs: Readonly<Record<string, string>>): readonly string[] {
  const values = new Map<string, string>()
  const names = new Set<string>()
  const stages = new Set<string>()
  const add = (written: string): void => {
    const name = expanded(unquoted(written), values)
    if (name !== '' && !stages.has(name.toLowerCase()) && names.size < maxNames) names.add(name)
  }
  let isBeforeStages = true
  for (const line of instructionsOf(text)) {
    const words = line
      .slice(0, maxLine)
      .trim()
      .split(/[ \t]+/)
    const keyword = words[0]?.toUpperCase()
    if (keyword === 'ARG' && isBeforeStages)
      for (const word of words.slice(1)) {
        const at = word.indexOf('=')
        const key = at < 0 ? word : word.slice(0, at)
        const value = buildArgs[key] ?? (at < 0 ? undefined : argumentValue(word.slice(at + 1), values))
        if (value !== undefined) values.set(key, value)
      }
    if (keyword === 'FROM') {
      isBeforeStages = false
      const [name = '', as, stage] = words.slice(1).filter(word => !word.startsWith('--'))
      add(name)
      if (as?.toUpperCase() === 'AS' && stage !== undefined) stages.add(stage.toLowerCase())
    }
    for (const word of words)
      for (const part of word.startsWith('--mount=')
        ? word.slice('--mount='.length).split(',')
        : [word.replace(/^--/, '')])
        if (part.startsWith('from=')) add(part.slice('from='.length))
  }
  return [...names].filter(name => name !== 'scratch' && !/^\d+$/.test(name))
}

/** Lines that go on in the next one are one; comments and empty lines in between are none of it. */
function instructionsOf(text: string): readonly string[] {
  const mark = escapeOf(text)
  const instructions: string[] = []
  let parts: string[] = []
  for (const line of text.split('\n')) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue
    const rest = line.trimEnd()
    // Two of them are one that is meant.
    const goesOn = rest.endsWith(mark) && rest.at(-2) !== mark
    parts.push(goesOn ? rest.slice(0, -1) : line)
    if (goesOn) continue
    instructions.push(parts.join(''))
    parts = []
  }
  return [...instructions, parts.join('')]
}

/** The names of the stages of a Dockerfile, in order; undefined for one without a name. For the words of an error: it decides nothing. */
export function stageNames(text: string): ReadonlyArray<string | undefined> {
  const stages: Array<string | undefined> = []
  for (const instruction of instructionsOf(text)) {
    const [keyword, ...words] = instruction
      .slice(0, maxLine)
      .trim()
      .split(/[ \t]+/)
    if (keyword?.toUpperCase() !== 'FROM') continue
    const [, as, stage] = words.filter(word => !word.startsWith('--'))
    stages.push(as?.toUpperCase() === 'AS' ? stage?.toLowerCase() : undefined)
  }
  return stages
}

const maxNames = 50
const maxLine = 4000

const unquoted = (word: string): string => (/^(["']).*\1$/.test(word) ? word.slice(1, -1) : word)

/** Of an ARG, which may have others in it. */
const argumentValue = (word: string, values: ReadonlyMap<string, string>): string =>
  word.startsWith("'") ? unquoted(word) : expanded(unquoted(word), values).slice(0, maxLine)

/** `$NAME`, `${NAME}` and `${NAME:-default}`. */
function expanded(word: string, values: ReadonlyMap<string, string>): string {
  let result = ''
  for (let at = 0; at < word.length && result.length < maxLine; ) {
    if (word[at] !== '$') {
      result += word[at++]
      continue
    }
    const isBraced = word[at + 1] === '{'
    const from = at + (isBraced ? 2 : 1)
    let end = from
    while (end < word.length && /\w/.test(word[end] ?? '')) end++
    const close = isBraced ? word.indexOf('}', end) : end
    if (close < 0) return ''
    const fallback = isBraced && word.startsWith(':-', end) ? word.slice(end + 2, close) : ''
    result += values.get(word.slice(from, end)) ?? expanded(fallback, values)
    at = isBraced ? close + 1 : end
  }
  return result
}

/** As BuildKit looks for what it was given: without what is understood, for `docker.io/library/node:latest` it asks for `node`. */
export function familiarName(name: string): string {
  const path = name.replace(/^(?:index\.)?docker\.io\//, '')
  const first = path.slice(0, Math.max(0, path.indexOf('/')))
  const isOfHub = path !== name || (first !== 'localhost' && !/[.:]/.test(first))
  const short = isOfHub && /^library\/[^/]+$/.test(path) ? path.slice('library/'.length) : path
  return short.endsWith(':latest') ? short.slice(0, -':latest'.length) : short
}
