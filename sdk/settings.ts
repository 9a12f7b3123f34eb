import type { Static, TSchema, TUnsafe } from '@sinclair/typebox'
import { Type } from './typebox.js'

/** Where a schema says which variable gives the value. */
export const variableKeyword = 'x-environment'

/** What `fromEnvironment` is told beside the name of the variable and the schema. */
export interface VariableOptions {
  /** After "it takes", where the schema does not say it in words: `two ports, the lower first, like 20000-24999`. */
  readonly takes?: string
  /** A password, or what may hold one: never shown, also not when it is wrong. */
  readonly secret?: boolean
}
/** With a form of its own, of which `start` gets what it means. */
export interface ParsedVariableOptions<T, V> extends VariableOptions {
  readonly takes: string
  /** Of a value that fits the schema, the default included; undefined when it cannot be used. Without side effects. */
  readonly parse: (value: T) => V | undefined
}

/** An environment variable as a field of `config` declares it. */
export interface DeclaredVariable extends VariableOptions {
  readonly name: string
  readonly parse?: (value: never) => unknown
}

/**
 * A field of `config` that is set by an environment variable, and by nothing else: for what must be known before the
 * platform has an admin, and for what belongs to the machine. Wrap the schema in it, and the whole in `maybe` where
 * there is no default and the variable may be unset:
 *
 *     config: object({ port: fromEnvironment('SHOP_PORT', Type.Integer({ minimum: 1, maximum: 65_535, default: 7000 })) })
 *
 * The text of the variable is read as the schema's type: a number, `true` or `false`, a list separated by commas. A
 * variable that is empty counts as unset. With a value that does not fit, or without one that must be there, the
 * plugin is `misconfigured`, and its reason names the variable and what it takes.
 */
export function fromEnvironment<T extends TSchema, V>(
  name: string,
  schema: T,
  options: ParsedVariableOptions<Static<T>, V>
): TUnsafe<V>
export function fromEnvironment<T extends TSchema>(
  name: string,
  schema: T,
  options?: VariableOptions
): TUnsafe<Static<T>>
export function fromEnvironment(
  name: string,
  schema: TSchema,
  options: VariableOptions = {}
): TUnsafe<unknown> {
  return Type.Unsafe({ ...schema, readOnly: true, [variableKeyword]: { name, ...options } })
}

/** The variable that sets this field; undefined when the operator does. */
export const variableOf = (field: TSchema): DeclaredVariable | undefined =>
  field[variableKeyword] as DeclaredVariable | undefined

const mark: unique symbol = Symbol.for('busbar.misconfigured')

/**
 * For `start`: settings that fit their schemas, and cannot be used together. The plugin is `misconfigured`, with
 * this message as the reason, and is not started again before something changes: name the setting and what helps.
 */
export class MisconfiguredError extends Error {
  readonly [mark] = true
}

/** True for a `MisconfiguredError` of this or of another copy of the SDK. */
export const isMisconfigured = (error: Error): boolean => mark in error
