import { randomUUID } from 'node:crypto'
import { mailer } from 'busbar/api/mail'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type MailSink, mailSink } from './mail-sink.js'

const message = { to: 'ann@example.com', subject: 'Hello', paragraphs: ['A paragraph.'] }

/** A mail server that has no time until it is told to have some. */
async function busyServer(t: Test): Promise<{ k: TestKernel; sink: MailSink; haveTime(): void }> {
  let isBusy = true
  const sink = await mailSink(t, { refuse: () => (isBusy ? 450 : undefined) })
  const k = await createTestKernel({ environment: sink.environment })
  t.teardown(() => k.close())
  return {
    k,
    sink,
    haveTime() {
      isBusy = false
    }
  }
}

const waiting = async (k: TestKernel): Promise<number> => (await k.query('select from mail.message')).length
const jobs = async (k: TestKernel): Promise<number> =>
  (await k.query("select from graphile_worker.jobs where task_identifier = 'mail:deliver'")).length

/** The message of which so many attempts have failed already. */
async function sendAfter(k: TestKernel, attempts: number): Promise<void> {
  await k.transaction(async tx => {
    await k.service(mailer).send(message, tx)
    await k.query('update graphile_worker._private_jobs set attempts = $1', [attempts], tx)
  })
}

test('the plugin is degraded until a message has been sent', async t => {
  const { k, sink, haveTime } = await busyServer(t)
  const admin = await k.as.session()
  const state = async (): Promise<unknown> => (await admin.get('/api/plugins/mail')).body.state
  await k.service(mailer).send(message)
  await until(async () => (await state()) === 'degraded', 'the plugin is degraded')
  haveTime()
  await sink.next('ann@example.com')
  await until(async () => (await state()) === 'running', 'the plugin runs')
})

test('a message waits after the seventh attempt, and is given up and deleted after the eighth', async t => {
  const { k, sink } = await busyServer(t)
  await sendAfter(k, 6)
  await until(() => sink.offered === 1, 'the seventh attempt')
  await until(
    async () => (await k.query('select from graphile_worker.jobs where last_error is not null')).length === 1,
    'it is to be tried again'
  )
  t.equal(await waiting(k), 1)
  await k.query('delete from mail.message')
  await k.query('delete from graphile_worker._private_jobs')

  await sendAfter(k, 7)
  await until(() => sink.offered === 2, 'the eighth attempt')
  await until(async () => (await waiting(k)) + (await jobs(k)) === 0, 'nothing of it is left')
})

test('a delivery that a crash has repeated after the message was sent and deleted ends', async t => {
  const { k, sink } = await busyServer(t)
  await k.enqueue('mail', 'deliver', { messageId: randomUUID() })
  await until(async () => (await jobs(k)) === 0, 'the job has ended')
  t.equal(sink.offered, 0)
  await k.checkHealth()
  t.equal((await (await k.as.session()).get('/api/plugins/mail')).body.state, 'running')
})
