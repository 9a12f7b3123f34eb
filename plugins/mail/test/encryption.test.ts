import { mailer } from 'busbar/api/mail'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type MailSink, mailSink } from './mail-sink.js'

const message = { to: 'ann@example.com', subject: 'Hello', paragraphs: ['A paragraph.'] }

async function platform(t: Test, { environment }: MailSink, mode: string): Promise<TestKernel> {
  const k = await createTestKernel({ environment: { ...environment, SMTP_TLS_MODE: mode } })
  t.teardown(() => k.close())
  return k
}

/** Why the plugin is degraded, once it is. */
async function reasonOf(k: TestKernel): Promise<string> {
  const admin = await k.as.session()
  return await until(async () => {
    const { state, reason } = (await admin.get('/api/plugins/mail')).body
    return state === 'degraded' && (reason as string)
  }, 'the plugin is degraded')
}

// Each of them has got as far as the certificate: the connection was encrypted as it was asked for.
test('a server whose certificate nobody vouches for gets nothing, encrypted as it is from the beginning', async t => {
  const sink = await mailSink(t, { encryption: 'always' })
  const k = await platform(t, sink, 'tls')
  await k.service(mailer).send(message)
  t.match(await reasonOf(k), /certificate/)
  t.equal(sink.offered, 0)
})

test('a server whose certificate nobody vouches for gets nothing, when it encrypts on request', async t => {
  const sink = await mailSink(t, { encryption: 'offered' })
  const k = await platform(t, sink, 'starttls')
  await k.service(mailer).send(message)
  t.match(await reasonOf(k), /certificate/)
  t.equal(sink.offered, 0)
})

test('where encryption is off, what the server offers is not taken', async t => {
  const sink = await mailSink(t, { encryption: 'offered' })
  const k = await platform(t, sink, 'none')
  await k.service(mailer).send(message)
  t.match(await sink.next('ann@example.com'), { to: ['ann@example.com'] })
})
