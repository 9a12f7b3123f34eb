import pg from 'pg'

const { builtins } = pg.types
const textArray: number = 1009
const int8Array = 1016
const numericArray = 1231

/** `int8` and `numeric` as numbers; a number that JavaScript cannot hold exactly is refused, not rounded. */
function exactNumber(text: string): number {
  const value = Number(text)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(
      `the database answered ${text}, which is beyond 2^53 and cannot be a number: select it as text`
    )
  }
  return value
}

const textElements: (text: string) => Array<string | null> = pg.types.getTypeParser(textArray, 'text')
const exactNumbers = (text: string): Array<number | null> =>
  textElements(text).map(element => (element === null ? null : exactNumber(element)))

const anyMoment: (text: string) => unknown = pg.types.getTypeParser(builtins.TIMESTAMPTZ, 'text')
const pair = (text: string, at: number): number => text.charCodeAt(at) * 10 + text.charCodeAt(at + 1) - 528

/** `2026-11-22 00:06:21.123+00`, as nearly all moments come; read by position, which takes a third of pg's time. */
function moment(text: string): unknown {
  if (text.charCodeAt(4) !== 45 || !text.endsWith('+00') || text.startsWith('00')) return anyMoment(text)
  const ms = text.length > 22 ? Number(text.slice(19, -3)) * 1000 : 0
  return new Date(
    Date.UTC(
      pair(text, 0) * 100 + pair(text, 2),
      pair(text, 5) - 1,
      pair(text, 8),
      pair(text, 11),
      pair(text, 14),
      pair(text, 17),
      ms
    )
  )
}

const parsers = new Map<number, (text: string) => unknown>([
  [builtins.INT8, exactNumber],
  [builtins.NUMERIC, exactNumber],
  [int8Array, exactNumbers],
  [numericArray, exactNumbers],
  [builtins.TIMESTAMPTZ, moment],
  // A day is not a moment: as a Date it would depend on the time zone of the machine.
  [builtins.DATE, text => text]
])

/** How values from PostgreSQL become values of JavaScript, for the pool of this process alone. */
export const valueTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' ? parsers.get(oid) : undefined) ?? pg.types.getTypeParser(oid, format)
}
