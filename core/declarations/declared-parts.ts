import type { ProblemKind } from 'busbar/sdk'
import { faultOf } from '../frames/fault.js'

/** Everything that is wrong with a plugin's declarations, in one message. */
export class RecordError extends Error {}

/** Whose declarations are recorded. */
export interface RecordContext {
  readonly id: string
  /** Third-party plugins keep to `/api/x/<id>/` and `x:<id>:`. */
  readonly builtIn: boolean
  /** The kinds of resources that other plugins declare. */
  readonly kinds?: readonly string[]
}

export const paramsOf = (url: string): string[] => [...url.matchAll(/:(\w+)/g)].map(match => match[1] ?? '')

/** Two paths of one shape match the same requests. */
export const shapeOf = (url: string): string => url.replace(/:\w+/g, ':')

export const problemsOf = ({ problems = [] }: { readonly problems?: readonly ProblemKind[] }) =>
  Object.freeze(problems.map(({ status, code, message }) => Object.freeze({ status, code, message })))

/** A deeply frozen copy of plain data, which is the field of a declaration. */
export function frozen<T>(data: T, field: string, { method, url, name }: Named): T {
  try {
    return deepFreeze(structuredClone(data))
  } catch (error) {
    const where = [method, url ?? name].filter(word => word !== undefined).join(' ')
    throw new RecordError(`${where}: ${field} is to be plain data: ${faultOf(error).message}`)
  }
}

/** What a declaration is called by. */
interface Named {
  readonly method?: string
  readonly url?: string
  readonly name?: string
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze)
  return value
}
