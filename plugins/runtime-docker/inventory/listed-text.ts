import { longestListedText, mostListedEntries } from 'busbar/api/containers'
import { cutText } from 'busbar/sdk'

/** Control characters, and those that turn the direction of what stands around them: a name must not look like another one. */
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** A text of the engine, or of who made the thing, as it is shown; empty for what is none. */
export const listedText = (value: unknown): string =>
  typeof value === 'string' ? cutText(value, longestListedText).replace(unseen, '\ufffd') : ''

/** The first of them. */
export const listedEntries = <T>(value: unknown, read: (entry: unknown) => readonly T[]): readonly T[] =>
  Array.isArray(value) ? value.slice(0, mostListedEntries).flatMap(read) : []

export type Fields = Readonly<Record<string, unknown>>

/** What may be asked for its members; of anything else they are undefined. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}

/** A whole number that is not negative, else 0. */
export const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0

const earliest = new Date(0)

/** A time of the engine, in seconds or as RFC 3339. */
export function timeOf(value: unknown): Date {
  const time = typeof value === 'number' ? new Date(value * 1000) : new Date(String(value))
  return Number.isNaN(time.getTime()) || time < earliest ? earliest : time
}
