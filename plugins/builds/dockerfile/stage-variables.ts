import { BadDockerfile } from './bad-dockerfile.js'
import type { Escape } from './characters.js'
import { environmentPairs } from './environment-pairs.js'
import { type ExpansionBudget, expandWord } from './expansion.js'
import { type ArgInstruction, canExpand, type Instruction } from './instruction.js'
import type { Refuse } from './words.js'

/** What ARGs are given from outside of a stage. */
export interface ArgumentValues {
  /** By the application: they win. */
  readonly buildArgs: Readonly<Record<string, string>>
  /** Before the first FROM; undefined: declared there without a value. */
  readonly globals: ReadonlyMap<string, string | undefined>
}

/** What a stage is built upon, as far as its variables go; absent: unknown. */
export type Inherited = ReadonlyMap<string, string | undefined> | undefined

/** The variables of a stage at one of its lines, as far as they are certain before it is built. */
export class StageVariables {
  /** ENV wins over ARG; undefined: set, to something that is not known. */
  readonly #environment: Map<string, string | undefined>
  readonly #arguments = new Map<string, string | undefined>()
  /** Whatever is not in `#environment` may be set all the same. */
  #isUncertain: boolean

  constructor(
    inherited: Inherited,
    private readonly values: ArgumentValues,
    private readonly escapeChar: Escape,
    private readonly budget: ExpansionBudget
  ) {
    this.#environment = new Map(inherited)
    this.#isUncertain = inherited === undefined
    // Every stage has one: of its image, or of the engine.
    if (!this.#environment.has('PATH')) this.#environment.set('PATH', undefined)
  }

  /** For a stage that is built upon this one: its ARGs end with it. */
  get inherited(): Inherited {
    return this.#isUncertain ? undefined : this.#environment
  }

  /** Takes in what an instruction sets. */
  apply(instruction: Instruction): void {
    if (instruction.kind === 'arg') this.#declare(instruction)
    else if (instruction.kind === 'plain' && instruction.keyword === 'ENV') this.#set(instruction.text)
  }

  /** A word with its variables put in; undefined when one of them is not certain, or not understood, or it becomes too long. */
  expand(word: string): string | undefined {
    try {
      return expandWord(word, {
        variables: { get: name => this.#valueOf(name) },
        escapeChar: this.escapeChar,
        budget: this.budget,
        refuse
      })
    } catch (error) {
      if (error instanceof BadDockerfile) return undefined
      throw error
    }
  }

  #valueOf(name: string): string | undefined {
    if (this.#environment.has(name)) return this.#environment.get(name) ?? refuse('it is not known')
    if (this.#isUncertain) return refuse('it is not known')
    if (!this.#arguments.has(name)) return undefined
    return this.#arguments.get(name) ?? refuse('it is not known')
  }

  #declare({ declarations }: ArgInstruction): void {
    const { buildArgs, globals } = this.values
    for (const { name, value } of declarations) {
      const isGiven = Object.hasOwn(buildArgs, name)
      const outer = isGiven ? buildArgs[name] : globals.get(name)
      // One without a value anywhere is not set.
      if (value === undefined && outer === undefined) this.#arguments.delete(name)
      else this.#arguments.set(name, isGiven || value === undefined ? outer : this.expand(value))
    }
  }

  #set(text: string): void {
    const pairs = environmentPairs(text, this.escapeChar, refuse).map(
      ([key, value]) => [key, this.expand(value)] as const
    )
    for (const [key, value] of pairs) {
      if (!canExpand(key)) {
        this.#environment.set(key, value)
        continue
      }
      // It may be the name of any variable.
      this.#isUncertain = true
      this.#environment.clear()
    }
  }
}

const refuse: Refuse = reason => {
  throw new BadDockerfile(0, reason)
}
