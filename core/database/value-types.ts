import pg from 'pg'

const { builtins } = pg.types
const textArray: number = 1009
const int8Array = 1016
const numericArray = 1231

/** `int8` and `numeric` as numbers; a number that JavaScript cannot hold exactly is refused, not rounded. */
function exactNumber (text: string): number {
  const value = Number(text)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(`the database answered ${text}, which is beyond 2^53 and cannot be a number: select it as text`)
  }
  return value
}

const textElements: (text: string) => Array<string | null> = pg.types.getTypeParser(textArray, 'text')
const exactNumbers = (text: string): Array<number | null> =>
  textElements(text).map(element => element === null ? null : exactNumber(element))

const parsers = new Map<number, (text: string) => unknown>([
  [builtins.INT8, exactNumber],
  [builtins.NUMERIC, exactNumber],
  [int8Array, exactNumbers],
  [numericArray, exactNumbers],
  // A day is not a moment: as a Date it would depend on the time zone of the machine.
  [builtins.DATE, text => text]
])

/** How values from PostgreSQL become values of JavaScript, for the pool of this process alone. */
export const valueTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' ? parsers.get(oid) : undefined) ?? pg.types.getTypeParser(oid, format)
}
