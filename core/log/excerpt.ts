import { isBoxedPrimitive, isNativeError } from 'node:util/types'

/** Shortens a text. */
export type Cut = (text: string, max: number) => string

interface Limits {
  readonly depth: number
  /** Of an object or a list. */
  readonly members: number
  readonly text: number
  readonly total: number
}

const ofLine: Limits = { depth: 6, members: 100, text: 8 * 1024, total: 24 * 1024 }
const ofError: Limits = { depth: 2, members: 20, text: 1024, total: 4 * 1024 }
const longestName = 200
const longestMessage = 4 * 1024
const longestStack = 8 * 1024
const longestChain = 5
const mostErrors = 5

/** What a log line shows of the values that it is given: the caller does not always know how large they are. */
export function excerptOf(value: object, cut: Cut): Record<string, unknown> {
  const excerpt = new Excerpt(ofLine, cut)
  return Array.isArray(value) || isScalar(value)
    ? { value: excerpt.value(value, ofLine.depth) }
    : excerpt.members(value, ofLine.depth)
}

/** An object that is shown as one value: each of its bytes or characters is a member, too. */
const isScalar = (value: object): boolean => ArrayBuffer.isView(value) || isBoxedPrimitive(value)

/** An error as a line shows it: with its causes; of what else it carries, as those of HTTP clients do, an excerpt. */
export function errorExcerpt(error: Error, cut: Cut, level = 0): object {
  try {
    const chain = chainOf(error)
    const { code, errors } = error as { code?: unknown; errors?: unknown }
    const text = (parts: readonly unknown[], between: string, max: number): string =>
      cut(parts.map(part => cut(String(part), max)).join(between), max)
    return {
      type: cut(String(error.constructor?.name ?? error.name), longestName),
      message: text(
        chain.map(({ message }) => message),
        ': ',
        longestMessage
      ),
      stack: text(chain.map(stackOf), '\ncaused by: ', longestStack),
      ...new Excerpt(ofError, cut).members(error, ofError.depth, ['message', 'stack', 'cause', 'errors']),
      ...(typeof code === 'string' || typeof code === 'number'
        ? { code: cut(String(code), longestName) }
        : {}),
      ...(Array.isArray(errors) && level < 2
        ? {
            aggregateErrors: errors
              .slice(0, mostErrors)
              .map(one =>
                isError(one)
                  ? errorExcerpt(one, (part, max) => cut(part, Math.min(max, 1024)), level + 1)
                  : new Excerpt(ofError, cut).value(one, 1)
              )
          }
        : {})
    }
  } catch {
    return { type: 'Error', message: 'an error that cannot be read', stack: '' }
  }
}

/** Where the message fills it, the stack would be made of that for nothing: what follows is cut off. */
function stackOf(error: Error): string {
  const { message } = error
  const isLong = typeof message === 'string' && message.length > longestStack
  return isLong ? message : (error.stack ?? message)
}

export const isError = (value: unknown): value is Error => value instanceof Error || isNativeError(value)

function chainOf(error: Error): Error[] {
  const chain: Error[] = []
  for (
    let at: unknown = error;
    isError(at) && !chain.includes(at) && chain.length < longestChain;
    at = at.cause
  )
    chain.push(at)
  return chain
}

class Excerpt {
  #left: number

  constructor(
    readonly limits: Limits,
    readonly cut: Cut
  ) {
    this.#left = limits.total
  }

  members(from: object, depth: number, without: readonly string[] = []): Record<string, unknown> {
    const copy: Record<string, unknown> = {}
    const names = Object.keys(from)
    let taken = 0
    for (const name of names) {
      if (without.includes(name)) continue
      if (taken++ === this.limits.members || this.#left <= 0) {
        copy['…'] = `${names.length} members`
        break
      }
      const short = this.#text(name, longestName)
      try {
        const value = this.value((from as Record<string, unknown>)[name], depth)
        if (value !== undefined) define(copy, short, value)
      } catch {
        define(copy, short, 'cannot be read')
      }
    }
    return copy
  }

  value(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.#text(value, this.limits.text)
    if (typeof value === 'bigint') return this.#text(String(value), longestName)
    if (typeof value === 'function' || typeof value === 'symbol' || value === undefined) return undefined
    this.#left -= 8
    if (typeof value !== 'object' || value === null) return value
    if (isError(value)) return this.#error(value)
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
    if (isBoxedPrimitive(value)) return this.value(value.valueOf(), depth)
    if (depth === 0) return Array.isArray(value) ? `${value.length} items` : 'an object'
    if (Array.isArray(value)) return this.#list(value, depth)
    const { toJSON } = value as { toJSON?: unknown }
    return typeof toJSON === 'function'
      ? this.value(Reflect.apply(toJSON, value, []), depth - 1)
      : this.members(value, depth - 1)
  }

  #error(error: Error): unknown {
    if (this.limits !== ofLine) return this.#text(error.message, this.limits.text)
    this.#left -= longestStack
    return errorExcerpt(error, this.cut)
  }

  #list(list: readonly unknown[], depth: number): unknown[] {
    const copy: unknown[] = []
    for (const item of list.slice(0, this.limits.members)) {
      if (this.#left <= 0) break
      copy.push(this.value(item, depth - 1) ?? null)
    }
    if (copy.length < list.length) copy.push(`… ${list.length} items`)
    return copy
  }

  #text(text: string, max: number): string {
    const short = this.cut(text, Math.max(0, Math.min(max, this.#left)))
    this.#left -= short.length + 4
    return short
  }
}

/** As a member, whatever it is called: `__proto__` too. To define it takes ten times as long as to assign it, which is enough for most names. */
function define(to: Record<string, unknown>, name: string, value: unknown): void {
  if (name in to)
    Object.defineProperty(to, name, { value, enumerable: true, configurable: true, writable: true })
  else to[name] = value
}
