import type { PoolClient, QueryConfig, QueryResult } from 'pg'

/** First words of the commands after which a connection is not, or may not be, in its initial state for the next user. */
const changingCommands: ReadonlySet<string> = new Set([
  'SET',
  'RESET',
  'DISCARD',
  'LISTEN',
  'PREPARE',
  'DEALLOCATE',
  'LOAD',
  'DO',
  'CALL'
])
/** The same by way of functions and tables, which no command tells; not any `temp`, as many a column is named so. */
const changingText =
  /set_config|advisory_lock|pg_temp|\btemp(?:orary)?\s{0,9}(?:\/\*|--)|\btemp(?:orary)?\s+(?:table|view|sequence|recursive)\b|(?:\binto\s|\blocal\s|\*\/)\s{0,9}temp(?:orary)?\b|\bwith\s{1,9}hold\b/i
/** In a text of several statements that has failed half-way: what it had done before that is not known. */
const openingText = /\b(?:begin|start|commit|set|reset|listen|deallocate|prepare|discard|load|do|call)\b/i

/** Of statements with a name, which are few and the same again and again: looking through one takes longer than all else that is done for it here. */
const namedTexts = new Map<string, boolean>()
const mostNamedTexts = 1_000

function isChangingText({ name, text }: QueryConfig): boolean {
  if (name === undefined) return changingText.test(text)
  let isChanging = namedTexts.get(text)
  if (isChanging === undefined) {
    if (namedTexts.size >= mostNamedTexts) namedTexts.clear()
    isChanging = changingText.test(text)
    namedTexts.set(text, isChanging)
  }
  return isChanging
}

const isChangingCommand = ({ command }: QueryResult): boolean => changingCommands.has(command)

/** Whether a statement has left something behind on its connection: a setting, a lock, a temporary table. */
export function changesSession(query: QueryConfig, result: QueryResult | QueryResult[]): boolean {
  // A text of several statements has several results.
  const isChanged = Array.isArray(result) ? result.some(isChangingCommand) : isChangingCommand(result)
  return isChanged || isChangingText(query)
}

/** Whether a statement that has failed may have done so. With values or a name it was a single one, and undone. */
export const mayHaveChangedSession = ({ text, name, values = [] }: QueryConfig): boolean =>
  (name === undefined && values.length === 0 && openingText.test(text)) || isChangingText({ name, text })

/** Whether a transaction is open on the connection. */
export function isInTransaction(client: PoolClient): boolean {
  const status = (client as unknown as { getTransactionStatus(): string | null }).getTransactionStatus()
  return status !== 'I' && status !== null
}

export const begunByText = (): Error =>
  new Error(
    'a transaction was begun with SQL text, and has been rolled back: the next statement may run on another connection; use transaction(…)'
  )
