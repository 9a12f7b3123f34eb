import { BadDockerfile } from './bad-dockerfile.js'
import { blankSeparated, type Escape } from './characters.js'
import { environmentPairs } from './environment-pairs.js'
import { canExpand, linesOf, type StageInstruction } from './instruction.js'
import { stringList } from './parse-copy.js'
import type { BaseImage } from './stage-walk.js'
import { type LengthsOfVariables, wordBound } from './word-bound.js'
import type { Refuse } from './words.js'

/** What the engine keeps beside each variable and each label. */
const entryBytes = 64

/** What the engine keeps beside the text of each step in the history of an image: a date, `/bin/sh -c #(nop)`. */
const historyEntryBytes = 128

/** PATH, where nothing sets it. */
const enginePathBytes = 100

/** Instructions that the engine puts no variables into. */
const asTheyAre: readonly string[] = ['RUN', 'CMD', 'ENTRYPOINT', 'HEALTHCHECK', 'SHELL', 'MAINTAINER']

/** Their text takes the place of what was there. */
const replacing: readonly string[] = [
  'CMD',
  'ENTRYPOINT',
  'HEALTHCHECK',
  'SHELL',
  'MAINTAINER',
  'USER',
  'STOPSIGNAL',
  'WORKDIR'
]

/** How large what a stage says of itself can be, at one of its lines: upper bounds, in bytes. */
export class StageSize implements LengthsOfVariables {
  readonly #environment: Map<string, number>
  readonly #arguments = new Map<string, number>()
  readonly #labels: Map<string, number>
  readonly #replaced: Map<string, number>
  /** What a variable can hold that was set under a computed name. */
  #ofAnyName = 0
  #longest = enginePathBytes
  #baseLabels = 0
  #other = 0
  #history = 0
  ports = 0
  volumes = 0

  private constructor(
    private readonly outer: LengthsOfVariables,
    before?: StageSize
  ) {
    const isFirst = before === undefined
    this.#environment = new Map(isFirst ? [['PATH', enginePathBytes]] : before.#environment)
    this.#labels = new Map(isFirst ? [] : before.#labels)
    this.#replaced = new Map(isFirst ? [] : before.#replaced)
    if (isFirst) return
    this.#ofAnyName = before.#ofAnyName
    this.#longest = before.#longest
    this.#baseLabels = before.#baseLabels
    this.#other = before.#other
    this.#history = before.#history
    this.ports = before.ports
    this.volumes = before.volumes
  }

  /** Upon a stage that has ended; without one upon nothing. */
  static upon(before: StageSize | undefined, outer: LengthsOfVariables): StageSize {
    const size = new StageSize(outer, before)
    // What continues a stage has its labels of the platform already; otherwise a step sets them.
    if (before === undefined) size.#addEntries(1)
    return size
  }

  static uponImage({ environment = {}, declared }: BaseImage, outer: LengthsOfVariables): StageSize {
    const size = new StageSize(outer)
    for (const [name, value] of Object.entries(environment))
      size.#set(size.#environment, name, Buffer.byteLength(value))
    if (declared !== undefined) {
      size.#baseLabels = declared.labelBytes
      size.#replaced.set('SHELL', declared.shellBytes)
      size.#other = Math.max(0, declared.bytes - declared.labelBytes - declared.shellBytes)
      size.ports = declared.ports
      size.volumes = declared.volumes
    }
    size.#addEntries(1)
    return size
  }

  of(name: string): number {
    return Math.max(
      this.#environment.get(name) ?? 0,
      this.#arguments.get(name) ?? 0,
      this.outer.of(name),
      this.#ofAnyName
    )
  }

  /** Of all that were ever set. */
  longest(): number {
    return Math.max(this.#longest, this.outer.longest())
  }

  get variables(): number {
    return this.#environment.size + this.#arguments.size
  }

  get labelBytes(): number {
    return this.#baseLabels + sum(this.#labels)
  }

  /** What its image says of itself, which each container from it repeats. */
  get bytes(): number {
    return this.labelBytes + sum(this.#environment) + sum(this.#replaced) + this.#other
  }

  /** What the image of one step takes in the engine's books, with how it came to be. */
  get stepBytes(): number {
    return this.bytes + this.#history + (this.#labels.size + this.#environment.size) * entryBytes
  }

  get stepLabelBytes(): number {
    return this.labelBytes + this.#labels.size * entryBytes
  }

  /** Takes in an instruction; answers how long what the engine puts variables into can become. */
  apply(instruction: StageInstruction, escapeChar: Escape, refuse: Refuse): number {
    const length = this.#apply(instruction, escapeChar, refuse)
    this.#addEntries(linesOf(instruction, escapeChar).length)
    return length
  }

  /** Of steps, in the history; the engine puts the shell before what nearly each of them does. */
  #addEntries(count: number): void {
    this.#history += count * (historyEntryBytes + (this.#replaced.get('SHELL') ?? 0))
  }

  #apply(instruction: StageInstruction, escapeChar: Escape, refuse: Refuse): number {
    const bound = (text: string): number => wordBound(text, this, escapeChar)
    switch (instruction.kind) {
      case 'onbuild': {
        const length = sumOf(linesOf(instruction, escapeChar).map(line => Buffer.byteLength(line)))
        this.#other += length
        this.#history += length
        return 0
      }
      case 'arg': {
        let total = 0
        for (const { name, value } of instruction.declarations) {
          const length = value === undefined ? 0 : bound(value)
          this.#set(this.#arguments, name, length)
          total += length + Buffer.byteLength(name)
        }
        this.#history += total
        return total
      }
      case 'copy': {
        const { flags, sources, destination } = instruction
        const total = sumOf([...flags, ...sources, destination].map(bound))
        this.#history += total
        return total
      }
      case 'plain':
        return this.#applyPlain(instruction.keyword, instruction.text, bound, escapeChar, refuse)
    }
  }

  #applyPlain(
    keyword: string,
    text: string,
    bound: (text: string) => number,
    escapeChar: Escape,
    refuse: Refuse
  ): number {
    if (keyword === 'ENV' || keyword === 'LABEL') {
      const pairs = environmentPairs(text, escapeChar, refuse).map(([key, value]) => ({
        key,
        keyLength: bound(key),
        length: bound(value)
      }))
      for (const { key, keyLength, length } of pairs) {
        if (keyword === 'LABEL') this.#labels.set(key, length)
        else if (!canExpand(key)) this.#set(this.#environment, key, length)
        else {
          this.#ofAnyName = Math.max(this.#ofAnyName, length)
          this.#set(this.#environment, key, length + keyLength)
        }
      }
      const total = sumOf(pairs.map(({ keyLength, length }) => keyLength + length))
      this.#history += total
      return total
    }
    const isExpanded = !asTheyAre.includes(keyword)
    const length = isExpanded ? sumOf(wordsOf(keyword, text).map(bound)) : Buffer.byteLength(text)
    // A RUN says what its ARGs were.
    this.#history += keyword === 'RUN' ? length + this.#argumentBytes : length
    // A relative path goes on from the one before.
    const before = keyword === 'WORKDIR' && !text.startsWith('/') ? (this.#replaced.get(keyword) ?? 0) : 0
    if (replacing.includes(keyword)) this.#replaced.set(keyword, before + length)
    else if (keyword !== 'RUN') this.#other += length
    return isExpanded ? length : 0
  }

  #set(variables: Map<string, number>, name: string, length: number): void {
    variables.set(name, length)
    this.#longest = Math.max(this.#longest, length)
  }

  get #argumentBytes(): number {
    return sumOf([...this.#arguments.keys()].map(name => Buffer.byteLength(name) + this.of(name)))
  }
}

/** What the engine expands each for itself: of a list what stands in its strings. */
export function wordsOf(keyword: string, text: string): readonly string[] {
  if (keyword === 'EXPOSE') return blankSeparated(text)
  return keyword === 'VOLUME' ? (stringList(text, notAList) ?? blankSeparated(text)) : [text]
}

/** It was refused when it was read. */
const notAList: Refuse = reason => {
  throw new BadDockerfile(0, reason)
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

function sum(entries: ReadonlyMap<string, number>): number {
  let total = 0
  for (const [name, length] of entries) total += Buffer.byteLength(name) + length
  return total
}
