import pg from 'pg'

/** What a test wants to know of one statement. */
interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** By the clock, whatever else is done: who waits for locks, how many there are, and who holds what was refused. */
const isPeriodic = (text: string): boolean => /pg_blocking_pids|pg_lock_status/.test(text)

/** Tells `listener` of everything that this process sends to PostgreSQL, by whomever, until the returned function is called. */
export function listenToStatements(listener: (statement: Statement) => void): () => void {
  const { prototype } = pg.Client
  const original = prototype.query
  prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [query, given] = args as [{ text?: string; values?: unknown[] } | string, unknown]
    const { text = 'submittable', values = given } = typeof query === 'string' ? { text: query } : query
    if (!isPeriodic(text)) listener({ text, values: Array.isArray(values) ? values : [] })
    return Reflect.apply(original, this, args) as never
  } as typeof original
  return () => {
    prototype.query = original
  }
}

/** The texts of what is sent while `work` runs. */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = []
  const stop = listenToStatements(({ text }) => {
    seen.push(text)
  })
  try {
    await work()
  } finally {
    stop()
  }
  return seen
}
