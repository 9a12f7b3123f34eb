import { BadDockerfile, quoted } from './bad-dockerfile.js'
import { skipBlanks, skipWord } from './characters.js'
import type { Refuse } from './words.js'

export type Flags = ReadonlyMap<string, string>

/** Of each instruction that has any: the flags that the engine's own builder knows. */
const known: Readonly<Record<string, readonly string[]>> = {
  FROM: ['platform'],
  COPY: ['from', 'chown'],
  ADD: ['chown'],
  HEALTHCHECK: ['interval', 'timeout', 'start-period', 'start-interval', 'retries']
}

const buildKitOnly: Readonly<Record<string, readonly string[]>> = {
  RUN: ['mount', 'network', 'security', 'device'],
  COPY: ['chmod', 'link', 'parents', 'exclude'],
  ADD: ['chmod', 'link', 'checksum', 'keep-git-dir', 'unpack', 'exclude']
}

/** What these say is looked up, so it must be there to be seen. */
const namesImage: readonly string[] = ['from', 'platform']

function unquoted(text: string): string {
  const quote = text.charAt(0)
  return text.length > 2 && (quote === '"' || quote === "'") && text.endsWith(quote)
    ? text.slice(1, -1)
    : text
}

/** Reads the `--name=value` words with which an instruction begins. */
export function readFlags(
  keyword: string,
  text: string,
  line: number
): { readonly flags: Flags; readonly rest: string } {
  const refuse: Refuse = reason => {
    throw new BadDockerfile(line, reason)
  }
  const flags = new Map<string, string>()
  let at = skipBlanks(text, 0)
  while (text.startsWith('--', at)) {
    const end = skipWord(text, at)
    const word = text.slice(at, end)
    const equals = word.indexOf('=')
    const name = equals < 0 ? word.slice(2) : word.slice(2, equals)
    if (buildKitOnly[keyword]?.includes(name) === true)
      throw new BadDockerfile(line, `the --${name} option of ${keyword}`, 'buildkit')
    if (known[keyword]?.includes(name) !== true)
      refuse(
        `${keyword} has no flag ${quoted(word)}: ${known[keyword] === undefined ? 'remove it' : `it has ${known[keyword].map(flag => `--${flag}`).join(', ')}`}`
      )
    if (equals < 0) refuse(`--${name} has no value: write --${name}=value in one word`)
    if (flags.has(name)) refuse(`--${name} is given twice: leave one`)
    const value = namesImage.includes(name) ? word.slice(equals + 1) : unquoted(word.slice(equals + 1))
    if (/["'\\`]/.test(value))
      refuse(`the value of --${name} is ${quoted(value)}: write it without quotes and escapes`)
    flags.set(name, value)
    at = skipBlanks(text, end)
  }
  return { flags, rest: text.slice(at) }
}
