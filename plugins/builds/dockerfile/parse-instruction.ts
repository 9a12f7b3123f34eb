import { BadDockerfile, quoted } from './bad-dockerfile.js'
import {
  blankSeparated,
  type Escape,
  isBlank,
  isWideSpace,
  nameOf,
  skipBlanks,
  skipWord,
  trimEnd
} from './characters.js'
import { readFlags } from './flags.js'
import type {
  ArgInstruction,
  FromInstruction,
  Instruction,
  OnBuildInstruction,
  PlainInstruction
} from './instruction.js'
import type { LogicalLine } from './logical-lines.js'
import { parseCopy, stringList } from './parse-copy.js'
import { labelText } from './parse-label.js'
import { hasHeredoc, quotedWords, type Refuse } from './words.js'

const inJsonOrShell = ['RUN', 'CMD', 'ENTRYPOINT'] as const
const asWritten = ['EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'USER', 'WORKDIR'] as const

/** A FROM, or what stands in a stage. */
type AnyInstruction = (FromInstruction & { readonly kind: 'from' }) | Instruction

/** Reads one instruction. What is not understood, and what engines may read in two ways, is refused with its line. */
export function parseInstruction({ text, line }: LogicalLine, escapeChar: Escape): AnyInstruction {
  const refuse: Refuse = reason => {
    throw new BadDockerfile(line, reason)
  }
  const from = skipBlanks(text, 0)
  const to = skipWord(text, from)
  const written = text.slice(from, to)
  // Letters of other alphabets have these as their capitals.
  const keyword = /^[A-Za-z]+$/.test(written) ? written.toUpperCase() : written
  const rest = argumentsOf(text.slice(to), keyword, escapeChar, refuse)
  if (keyword === 'ONBUILD') return { ...onBuild(rest, line, escapeChar, refuse), line }
  const { flags, rest: words } = readFlags(keyword, rest, line)
  if (words === '' && rest !== '')
    return refuse(`${keyword} has nothing after its flags: write what it is about`)
  const plain = (text: string): PlainInstruction & { readonly line: number } => ({
    kind: 'plain',
    keyword,
    text: [...[...flags].map(([name, value]) => `--${name}=${value}`), text].join(' '),
    line
  })

  if (keyword === 'FROM') return { kind: 'from', ...fromWords(words, flags.get('platform'), refuse), line }
  if (keyword === 'ARG') return { ...argWords(words, escapeChar, refuse), line }
  if (keyword === 'COPY' || keyword === 'ADD') {
    refuseHeredoc(words, refuse)
    return { ...parseCopy(keyword, flags, words, refuse), line }
  }
  if (keyword === 'LABEL') return plain(labelText(words, escapeChar, line))
  if (keyword === 'ENV') return plain(pairs(words, escapeChar, refuse))
  if (keyword === 'VOLUME') return plain(listOr(words, refuse))
  if (keyword === 'HEALTHCHECK') return plain(healthCheck(words, flags.size > 0, refuse))
  if (keyword === 'SHELL') {
    const list = stringList(words, refuse)
    return list === undefined || list.length === 0
      ? refuse('SHELL takes a list: write SHELL ["/bin/sh", "-c"]')
      : plain(JSON.stringify(list))
  }
  if (isOneOf(inJsonOrShell, keyword)) {
    if (keyword === 'RUN') refuseHeredoc(words, refuse)
    return plain(listOr(words, refuse))
  }
  if (isOneOf(asWritten, keyword)) return plain(words)
  return refuse(
    `unknown instruction: ${written.slice(0, 60)}; check its spelling, and whether the line before it should end in ${escapeChar}`
  )
}

const isOneOf = (names: readonly string[], keyword: string): boolean => names.includes(keyword)

/** What stands after the keyword, without the space around it. */
function argumentsOf(text: string, keyword: string, escapeChar: Escape, refuse: Refuse): string {
  const from = skipBlanks(text, 0)
  if (isWideSpace(text[from]))
    refuse(
      `${nameOf(text.charAt(from))} stands after ${quoted(keyword)}, which looks like a space or like nothing: write a space`
    )
  // As the engine trims it; a byte order mark is no space to it.
  const result = trimEnd(
    text.slice(from),
    character => isBlank(character) || (isWideSpace(character) && character !== '\ufeff')
  )
  if (result === '') refuse(`${quoted(keyword)} has no arguments: write what it is about`)
  if (result.endsWith(escapeChar))
    refuse(
      `it ends in the escape character ${escapeChar} and a space that cannot be seen, or in nothing that it escapes: remove it`
    )
  return result
}

function refuseHeredoc(text: string, refuse: Refuse): void {
  if (hasHeredoc(text))
    refuse(
      'heredocs (<<) are of BuildKit, and images are built here by the classic builder: write the lines into a file of the repository, or join them by \\n in a printf'
    )
}

/** The JSON form in one way of writing it, or the text itself. */
function listOr(text: string, refuse: Refuse): string {
  const list = stringList(text, refuse)
  return list === undefined ? text : JSON.stringify(list)
}

function onBuild(text: string, line: number, escapeChar: Escape, refuse: Refuse): OnBuildInstruction {
  const keyword = text.slice(0, skipWord(text, 0)).toUpperCase()
  if (['FROM', 'ONBUILD', 'MAINTAINER'].includes(keyword))
    return refuse(`ONBUILD ${keyword} is not possible: put the ${keyword} where it takes effect`)
  const trigger = parseInstruction({ text, line }, escapeChar)
  if (trigger.kind === 'from' || trigger.kind === 'onbuild')
    return refuse(`ONBUILD ${keyword} is not possible`)
  // Triggers are read again when they are carried out, and then with \ as the escape character whatever was set here.
  if (escapeChar !== '\\' && /[\\`]/.test(text))
    return refuse(
      'an ONBUILD that holds \\ or ` is read in another way when it is carried out: remove the escape directive, or put it where it takes effect'
    )
  if (trigger.kind === 'arg' && trigger.declarations.length > 1)
    return refuse('ONBUILD ARG takes one name: write an ONBUILD ARG for each')
  const { line: _, ...instruction } = trigger
  return { kind: 'onbuild', trigger: instruction }
}

/** What a name of an image may consist of, with its variables. */
const imageWord = /^[\w./:@${}+-]+$/
const platformWord = /^[\w./${}:+-]+$/
const stageName = /^[A-Za-z][A-Za-z0-9._-]{0,127}$/
const takenNames: readonly string[] = ['scratch', 'context']

function fromWords(
  text: string,
  platform: string | undefined,
  refuse: Refuse
): Omit<FromInstruction, 'line'> {
  const [image = '', as, name, ...more] = blankSeparated(text)
  if (more.length > 0 || (as !== undefined && (name === undefined || as.toUpperCase() !== 'AS')))
    return refuse(`FROM ${quoted(text)} is not understood: write FROM image, or FROM image AS name`)
  if (!imageWord.test(image))
    return refuse(
      `FROM ${quoted(image)} holds a character that no name of an image has: write it without quotes and escapes`
    )
  if (platform !== undefined && !platformWord.test(platform))
    return refuse(`--platform=${quoted(platform)} is no platform: write linux/amd64, or leave it out`)
  if (name !== undefined && !stageName.test(name))
    return refuse(
      `${quoted(name)} cannot be the name of a stage: write a letter, then letters, digits, ., _ and -`
    )
  const stage = name?.toLowerCase()
  if (stage !== undefined && takenNames.includes(stage))
    return refuse(`a stage cannot be called ${stage}: choose another name`)
  return { image, ...(platform !== undefined && { platform }), ...(stage !== undefined && { name: stage }) }
}

function argWords(text: string, escapeChar: Escape, refuse: Refuse): ArgInstruction {
  const declarations = quotedWords(text, escapeChar, refuse).map(word => {
    const equals = word.indexOf('=')
    const name = equals < 0 ? word : word.slice(0, equals)
    if (!/^[A-Za-z_][\w.-]*$/.test(name))
      refuse(`${quoted(name)} is no name of a variable: write letters, digits and _`)
    return equals < 0 ? { name } : { name, value: word.slice(equals + 1) }
  })
  return { kind: 'arg', declarations }
}

/** `A=1 B=2`, or the old form `A 1`. */
function pairs(text: string, escapeChar: Escape, refuse: Refuse): string {
  const end = skipWord(text, 0)
  if (!text.slice(0, end).includes('='))
    return end === text.length ? refuse(`ENV ${quoted(text)} has no value: write NAME=value`) : text
  const words = quotedWords(text, escapeChar, refuse)
  const odd = words.find(word => !word.includes('='))
  return odd === undefined
    ? words.join(' ')
    : refuse(`${quoted(odd)} has no = in it: write NAME=value, and a value that holds spaces in quotes`)
}

function healthCheck(text: string, hasFlags: boolean, refuse: Refuse): string {
  const end = skipWord(text, 0)
  const kind = text.slice(0, end).toUpperCase()
  const command = text.slice(skipBlanks(text, end))
  if (kind === 'NONE' && command === '' && !hasFlags) return 'NONE'
  if (kind !== 'CMD' || command === '')
    return refuse('a HEALTHCHECK is not understood: write HEALTHCHECK CMD command, or HEALTHCHECK NONE')
  return `CMD ${listOr(command, refuse)}`
}
