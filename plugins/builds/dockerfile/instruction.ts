import type { Escape } from './characters.js'
import { quoteWord } from './words.js'

/** `NAME`, or `NAME=value`; the value as it is written, quotes and variables included. */
interface ArgDeclaration {
  readonly name: string
  readonly value?: string
}

/** One instruction of a Dockerfile, understood as far as it can reach outside of its own image. */
export type Instruction = StageInstruction & {
  /** In the author's file, from 1. */
  readonly line: number
}

/** What may stand in a stage. */
export type StageInstruction = ArgInstruction | CopyInstruction | OnBuildInstruction | PlainInstruction

export interface ArgInstruction {
  readonly kind: 'arg'
  readonly declarations: readonly ArgDeclaration[]
}

export interface CopyInstruction {
  readonly kind: 'copy'
  readonly keyword: 'COPY' | 'ADD'
  /** `--from`: a stage, its number, or an image. */
  readonly from?: string
  /** `--chown=…`. */
  readonly flags: readonly string[]
  /** As they are written; of the JSON form what stands in its strings. */
  readonly sources: readonly string[]
  readonly destination: string
  readonly isJson: boolean
}

export interface OnBuildInstruction {
  readonly kind: 'onbuild'
  readonly trigger: Exclude<StageInstruction, OnBuildInstruction>
}

/** Reaches nothing but its own image: its text is handed on. */
export interface PlainInstruction {
  readonly kind: 'plain'
  readonly keyword: string
  readonly text: string
}

export interface FromInstruction {
  readonly line: number
  /** `--platform`, with its variables. */
  readonly platform?: string
  /** An image or a stage, with its variables. */
  readonly image: string
  /** The stage's own name, in lower case. */
  readonly name?: string
}

export interface Stage {
  readonly from: FromInstruction
  readonly instructions: readonly Instruction[]
}

export interface Dockerfile {
  readonly escapeChar: Escape
  readonly syntax: string | null
  /** Before the first FROM. */
  readonly globals: ReadonlyArray<ArgInstruction & { readonly line: number }>
  /** One at least. */
  readonly stages: readonly Stage[]
}

/** An instruction as it is handed over: on one line, or on several for several ARGs. */
export function linesOf(instruction: StageInstruction, escapeChar: Escape): string[] {
  switch (instruction.kind) {
    case 'arg':
      return instruction.declarations.map(({ name, value }) =>
        value === undefined ? `ARG ${name}` : `ARG ${name}=${value}`
      )
    case 'copy':
      return [copyLine(instruction)]
    case 'onbuild':
      return linesOf(instruction.trigger, escapeChar).map(line => `ONBUILD ${line}`)
    case 'plain':
      return [`${instruction.keyword} ${instruction.text}`]
  }
}

function copyLine({ keyword, from, flags, sources, destination, isJson }: CopyInstruction): string {
  const paths = [
    ...sources.map(source => (keyword === 'ADD' && canExpand(source) ? asPath(source) : source)),
    destination
  ]
  return [
    keyword,
    ...(from === undefined ? [] : [`--from=${from}`]),
    ...flags,
    ...(isJson ? [JSON.stringify(paths)] : paths)
  ].join(' ')
}

/** The engine puts variables, quotes and escapes into effect: what the text says is not what it will be. */
export const canExpand = (source: string): boolean => /[$"'\\`]/.test(source)

/** Whatever it becomes, it is no address then. Paths are below the root of the context anyway. */
const asPath = (source: string): string =>
  source.startsWith('/') || source.startsWith('./') ? source : `./${source}`

/** An ARG whose value is known. */
export const argLine = (name: string, value: string | undefined, escapeChar: Escape): string =>
  value === undefined ? `ARG ${name}` : `ARG ${name}=${quoteWord(value, escapeChar)}`
