import { type MailMessage, mailer } from 'busbar/api/mail'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type MailSink, mailSink } from './mail-sink.js'

const message: MailMessage = {
  to: 'ann@example.com',
  subject: 'Héllo',
  paragraphs: ['A first paragraph.', 'Ünd a second.'],
  link: { label: 'Open it', url: 'https://busbar.example.com/reset-password?token=s3cret-value' },
  note: 'Do not answer.'
}

async function platform(
  t: Test,
  sink: MailSink | undefined,
  more: Record<string, string> = {},
  lines: string[] = []
): Promise<TestKernel> {
  const k = await createTestKernel({
    environment: { ...sink?.environment, ...more },
    onLog: line => {
      lines.push(line)
    }
  })
  t.teardown(() => k.close())
  return k
}

const waiting = async (k: TestKernel): Promise<Array<{ id: string; content: string }>> =>
  await k.query('select id, content from mail.message')

test('a message is sent as text and HTML, and nothing of it is kept', async t => {
  const sink = await mailSink(t, { login: { user: 'busbar', password: 'the-smtp-password' } })
  const lines: string[] = []
  const k = await platform(
    t,
    sink,
    { SMTP_USER: 'busbar', SMTP_PASSWORD: 'the-smtp-password', LOG_LEVEL: 'debug' },
    lines
  )
  t.equal(await k.service(mailer).isOn(), true)
  await k.service(mailer).send(message)
  const received = await sink.next('ann@example.com')
  t.match(received, { from: 'platform@example.com', to: ['ann@example.com'], user: 'busbar' })
  t.match(received.headers, /^From: Busbar <platform@example\.com>$/m)
  t.match(received.headers, /^To: ann@example\.com$/m)
  t.match(received.headers, /^Content-Type: multipart\/alternative/m)
  t.equal(
    received.text.replaceAll('\r\n', '\n').trim(),
    'A first paragraph.\n\nÜnd a second.\n\nOpen it:\nhttps://busbar.example.com/reset-password?token=s3cret-value\n\nDo not answer.'
  )
  t.match(received.raw, /text\/html/)
  await until(async () => (await waiting(k)).length === 0, 'the message is deleted')
  await until(
    async () =>
      (await k.query("select from graphile_worker.jobs where task_identifier = 'mail:deliver'")).length === 0,
    'its job has ended'
  )
  t.notMatch(lines.join('\n'), /s3cret-value|the-smtp-password/)
})

test('a message exists exactly when its transaction commits, and is encrypted until it is sent', async t => {
  const sink = await mailSink(t)
  const k = await platform(t, sink)
  const mail = k.service(mailer)
  await t.rejects(
    k.transaction(async tx => {
      await mail.send({ ...message, to: 'nobody@example.com' }, tx)
      throw new Error('no')
    }),
    { message: 'no' }
  )
  let kept: string[] = []
  await k.transaction(async tx => {
    await mail.send(message, tx)
    const rows = await k.query<object>(
      `select m.content, j.payload from mail.message m, graphile_worker._private_jobs j
        join graphile_worker._private_tasks k on k.id = j.task_id where k.identifier = 'mail:deliver'`,
      [],
      tx
    )
    kept = rows.map(row => JSON.stringify(row))
  })
  t.equal(kept.length, 1)
  t.notMatch(kept[0], /s3cret|ann@example|paragraph/)
  await sink.next('ann@example.com')
  t.equal(sink.box.length, 1)
})

test('nobody writes a header or a second recipient into a message', async t => {
  const sink = await mailSink(t)
  const k = await platform(t, sink)
  const mail = k.service(mailer)
  for (const to of [
    'ann@example.com\r\nBcc: eve@example.com',
    'ann@example.com, eve@example.com',
    'Eve <eve@example.com>',
    'ann',
    '',
    '"a@b"@example.com',
    `${'a'.repeat(250)}@example.com`
  ]) {
    await t.rejects(
      mail.send({ ...message, to }),
      { status: 400, code: 'E_MAIL_RECIPIENT' },
      JSON.stringify(to)
    )
  }
  await mail.send({ ...message, subject: 'Hi\r\nBcc: eve@example.com\r\n\r\nbody' })
  const received = await sink.next('ann@example.com')
  t.match(received.headers, /^Subject: Hi Bcc: eve@example\.com body$/m)
  t.notMatch(received.headers, /^Bcc:/m)
  t.same(received.to, ['ann@example.com'])
})

test('a server that is away gets the message when it is back, and until then the plugin is degraded', async t => {
  const first = await mailSink(t)
  const k = await platform(t, undefined, { ...first.environment, SMTP_PORT: '9' })
  await k.service(mailer).send(message)
  const admin = await k.as.session()
  await until(
    async () => (await admin.get('/api/plugins/mail')).body.state === 'degraded',
    'the plugin is degraded'
  )
  t.match(
    (await admin.get('/api/plugins/mail')).body.reason,
    /^the mail server 127\.0\.0\.1:9 did not take a message: .*ECONNREFUSED/
  )
  t.equal((await waiting(k)).length, 1)
  await k.stop()

  const again = await createTestKernel({ state: k.state, environment: first.environment })
  t.teardown(() => again.stop())
  t.match(await first.next('ann@example.com'), { to: ['ann@example.com'] })
  await until(async () => (await waiting(again)).length === 0, 'the message is deleted')
})

test('a recipient that is refused for good is not tried again, one that is refused for now is', async t => {
  let isBusy = true
  const sink = await mailSink(t, {
    refuse: address => (address.startsWith('gone') ? 550 : isBusy ? 450 : undefined)
  })
  const k = await platform(t, sink)
  await k.service(mailer).send({ ...message, to: 'gone@example.com' })
  await until(async () => sink.offered === 1, 'it was offered')
  await until(async () => (await waiting(k)).length === 0, 'it is deleted')
  await k.service(mailer).send(message)
  await until(async () => sink.offered === 2, 'it was offered')
  isBusy = false
  await sink.next('ann@example.com')
  t.equal(sink.offered, 3)
})

test('what came too late is not sent', async t => {
  const sink = await mailSink(t)
  const k = await platform(t, sink)
  await k.service(mailer).send({ ...message, expiresAt: new Date(Date.now() - 1000) })
  await until(async () => (await waiting(k)).length === 0, 'it is deleted')
  t.equal(sink.offered, 0)
})

test('a password goes over no connection that could not be encrypted', async t => {
  const sink = await mailSink(t, { login: { user: 'busbar', password: 'the-smtp-password' } })
  const k = await platform(t, sink, {
    SMTP_TLS_MODE: 'starttls',
    SMTP_USER: 'busbar',
    SMTP_PASSWORD: 'the-smtp-password'
  })
  await k.service(mailer).send(message)
  const admin = await k.as.session()
  await until(
    async () => (await admin.get('/api/plugins/mail')).body.state === 'degraded',
    'the plugin is degraded'
  )
  t.equal(sink.offered, 0)
})

test('without a mail server sending is refused with the remedy', async t => {
  const k = await platform(t, undefined)
  t.equal(await k.service(mailer).isOn(), false)
  await t.rejects(k.service(mailer).send(message), {
    status: 503,
    code: 'E_MAIL_OFF',
    message: /set SMTP_HOST/
  })
})

test('settings that cannot be used stop this plugin only, and are named', async t => {
  const k = await platform(t, undefined, { SMTP_HOST: 'mx', SMTP_FROM_EMAIL: 'a@b.example', SMTP_PORT: 'x' })
  const admin = await k.as.session()
  t.match((await admin.get('/api/plugins/mail')).body, {
    state: 'misconfigured',
    reason: /SMTP_PORT is "x"/
  })
})
