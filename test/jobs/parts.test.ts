import { type Log, Problem } from 'busbar/sdk'
import { test } from 'tap'
import { execute, graceMs, Interrupted } from '../../core/jobs/job-execution.js'
import type { RecordedJob } from '../../core/jobs/recorded-job.js'
import { workerLog } from '../../core/jobs/worker-log.js'
import { WorkerShare } from '../../core/jobs/worker-share.js'

test('one plugin holds half of the workers of a lane, and all of them together leave one', t => {
  const share = new WorkerShare({ short: 6, long: 12 })
  for (let n = 0; n < 3; n++) {
    t.equal(share.isUsedUp('a', 'short'), false, `${n} of three`)
    share.take('a', 'short')
  }
  t.equal(share.isUsedUp('a', 'short'), true)
  t.equal(share.isUsedUp('a', 'long'), false, 'lanes are apart')
  t.equal(share.isUsedUp('b', 'short'), false)
  share.take('b', 'short')
  share.take('c', 'short')
  t.equal(share.isUsedUp('d', 'short'), true, 'five of six are taken')
  share.give('a', 'short')
  t.equal(share.isUsedUp('d', 'short'), false)
  t.equal(share.isUsedUp('a', 'short'), false)
  for (const plugin of ['a', 'a', 'a', 'b', 'c']) share.give(plugin, 'short')
  share.take('a', 'short')
  t.equal(share.isUsedUp('a', 'short'), false, 'who gives back too often has not more')
  share.take('a', 'short')
  share.take('a', 'short')
  t.equal(share.isUsedUp('a', 'short'), true)
  t.end()
})

test('a lane of one or two workers has one for third-party plugins', t => {
  for (const workers of [1, 2, 3]) {
    const share = new WorkerShare({ short: workers, long: workers })
    t.equal(share.isUsedUp('a', 'short'), false)
    share.take('a', 'short')
    t.equal(share.isUsedUp('a', 'short'), true, `one of ${workers}`)
    t.equal(share.isUsedUp('b', 'short'), workers < 3)
  }
  t.end()
})

function logged(): { readonly log: Log; readonly lines: [level: string, fields: object, message: string][] } {
  const lines: [string, object, string][] = []
  const levels = ['trace', 'debug', 'info', 'warn', 'error']
  const log = Object.fromEntries(
    levels.map(level => [level, (fields: object, message: string) => lines.push([level, fields, message])])
  )
  return { log: log as unknown as Log, lines }
}

test('what the queue says is logged one level lower, but for the outcome of jobs', t => {
  const { log, lines } = logged()
  const logger = workerLog(log).scope({})
  logger.error('a', { error: new Error('x') })
  logger.warn('b')
  logger.info('c', {})
  logger.debug('d')
  logger.error('e', { failure: true })
  logger.info('f', { success: true })
  t.match(lines, [
    ['error', { err: { message: 'x' } }, 'a'],
    ['warn', {}, 'b'],
    ['debug', {}, 'c'],
    ['trace', {}, 'd']
  ])
  t.equal(lines.length, 4)
  t.strictSame(lines[1]?.[1], {})
  t.end()
})

const job = (run: RecordedJob['run'], timeoutMs = 60_000): RecordedJob => ({
  name: 'work',
  lane: 'short',
  attempts: 3,
  timeoutMs,
  run
})
const attempt = (number: number, of = 3) => ({ id: '7', number, of })
/** Ends when its signal aborts, with the reason. */
const untilAborted: RecordedJob['run'] = async (_payload, { signal }) =>
  await new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  )

test('a job gets its payload and its attempt, and its end is logged', async t => {
  const { log, lines } = logged()
  const got: unknown[] = []
  const { result } = execute(
    'p',
    job(async (payload, { jobId, attempt: number, signal }) => {
      got.push(payload, jobId, number, signal.aborted)
    }),
    { a: 1 },
    attempt(2),
    log
  )
  await result
  t.same(got, [{ a: 1 }, '7', 2, false])
  t.match(lines, [['debug', { plugin: 'p', job: 'work', jobId: '7', attempt: 2 }, 'job done']])
  const { durationMs } = lines[0]?.[1] as { durationMs: number }
  t.ok(durationMs >= 0 && durationMs < 60_000)
})

test('a failed attempt is a warning while another one follows, and an error when it was the last', async t => {
  const { log, lines } = logged()
  const fail = job(async () => await Promise.reject(new Error('broken')))
  for (const number of [1, 2, 3])
    await t.rejects(execute('p', fail, {}, attempt(number), log).result, { message: 'broken' })
  t.match(lines, [
    ['warn', {}, 'job failed; it is tried again'],
    ['warn', {}, 'job failed; it is tried again'],
    ['error', { err: { message: 'broken' } }, 'job failed for the last time']
  ])
  const problem = job(async () => await Promise.reject(new Problem(409, 'E_TAKEN', 'it is taken')))
  await t.rejects(execute('p', problem, {}, attempt(1), log).result, { message: 'it is taken (E_TAKEN)' })
})

test('a job that takes longer than its limit has failed, also when it then ends well', async t => {
  const { log, lines } = logged()
  const late = { message: 'the job p:work did not end within 0.01 seconds' }
  await t.rejects(execute('p', job(untilAborted, 10), {}, attempt(1), log).result, late)
  const quiet = job(async (_payload, { signal }) => {
    await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
  }, 10)
  await t.rejects(execute('p', quiet, {}, attempt(3), log).result, late)
  t.same(
    lines.map(([level]) => level),
    ['warn', 'error']
  )
  t.equal(graceMs, 10_000)
})

test('a job that is interrupted runs again, unless it has one attempt only', async t => {
  const { log, lines } = logged()
  const first = execute('p', job(untilAborted), {}, attempt(3), log)
  first.interrupt(new Error('the plugin stops'))
  t.ok((await first.result.catch((error: unknown) => error)) instanceof Interrupted)
  await t.rejects(first.result, { message: 'interrupted: the plugin stops' })
  t.match(lines, [['info', {}, 'job interrupted; it runs again']])
  const only = execute('p', job(untilAborted), {}, attempt(1, 1), log)
  only.interrupt(new Error('the plugin stops'))
  await t.rejects(only.result, { message: 'the plugin stops' })
  t.notOk((await only.result.catch((error: unknown) => error)) instanceof Interrupted)
  t.match(lines[1], ['error', {}, 'job failed for the last time'])
})
