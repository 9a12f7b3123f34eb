import type { Log } from 'busbar/sdk'
import { Problem } from 'busbar/sdk'
import { test } from 'tap'
import { type Execution, execute, Interrupted } from '../../core/jobs/job-execution.js'
import { job } from './job-kit.js'

const attempt = { id: '1', number: 1, of: 3 }

function logged() {
  const lines: string[] = []
  const note = (level: string) => (_fields: object, text: string) => lines.push(`${level} ${text}`)
  return {
    lines,
    log: {
      debug: note('debug'),
      info: note('info'),
      warn: note('warn'),
      error: note('error')
    } as unknown as Log
  }
}

/** Ends when it is told to, with the reason. */
const obedient = async (_payload: unknown, { signal }: { readonly signal: AbortSignal }): Promise<void> =>
  await new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const failureOf = async ({ result }: Execution): Promise<unknown> =>
  await result.then(
    () => undefined,
    (error: unknown) => error
  )

test('a run that is cut off is to run again, unless it was the only attempt: then it has failed', async t => {
  const { lines, log } = logged()
  const again = execute('p', job('j', obedient), {}, attempt, log)
  again.interrupt(new Error('the plugin is stopping'))
  t.ok((await failureOf(again)) instanceof Interrupted)
  const once = execute('p', job('j', obedient), {}, { ...attempt, of: 1 }, log)
  once.interrupt(new Error('the plugin is stopping'))
  const failure = await failureOf(once)
  t.notOk(failure instanceof Interrupted)
  t.match(failure, { message: 'the plugin is stopping' })
  t.same(lines, ['info job interrupted; it runs again', 'error job failed for the last time'])
})

test('work that was done when it was cut off is done', async t => {
  const { log } = logged()
  const run = execute(
    'p',
    job('j', async (_payload, { signal }) => {
      await obedient(undefined, { signal }).catch(() => {})
    }),
    {},
    attempt,
    log
  )
  run.interrupt(new Error('the plugin is stopping'))
  await t.resolves(run.result)
})

test('a time limit that no timer takes is none that is over at once', async t => {
  const { log } = logged()
  const run = execute(
    'p',
    job(
      'j',
      async (_payload, { signal }) => {
        await new Promise(resolve => setTimeout(resolve, 50))
        signal.throwIfAborted()
      },
      { timeoutMs: 365 * 24 * 3600_000 }
    ),
    {},
    attempt,
    log
  )
  await t.resolves(run.result)
})

test('a run that takes too long has failed, also when it returns, and is no interruption', async t => {
  const { lines, log } = logged()
  const late = execute(
    'p',
    job(
      'j',
      async (_payload, { signal }) => {
        await obedient(undefined, { signal }).catch(() => {})
      },
      { timeoutMs: 20 }
    ),
    {},
    attempt,
    log
  )
  await t.rejects(late.result, { message: 'the job p:j did not end within 0.02 seconds' })
  t.same(lines, ['warn job failed; it is tried again'])
})

test('a problem is kept with its code', async t => {
  const { log } = logged()
  const failing = job('j', async () => {
    throw new Problem(409, 'E_BUSY', 'busy')
  })
  await t.rejects(execute('p', failing, {}, attempt, log).result, { message: 'busy (E_BUSY)' })
})
