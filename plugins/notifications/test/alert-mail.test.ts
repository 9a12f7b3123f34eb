import { randomUUID } from 'node:crypto'
import { deploymentFinished } from 'busbar/api/deployments'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { mailSink } from '../../mail/test/mail-sink.js'
import { addMember, delivered, holds, itemsOf, makeProject, tell, toProject } from './inbox-lab.js'

takeAwayFromEngine()

const preferences = '/api/account/alert-preferences'

async function platform(t: Test, environment: Readonly<Record<string, string>> = {}) {
  const sink = await mailSink(t)
  const k = await createTestKernel({
    environment: { ...sink.environment, PUBLIC_BASE_URL: 'https://busbar.example.com', ...environment }
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  return { sink, k, ann, project: await makeProject(ann) }
}

async function fail(
  k: TestKernel,
  projectId: string,
  kind: 'deploy' | 'build',
  status: 'failed' | 'success'
) {
  await k.emit(deploymentFinished, {
    deploymentId: randomUUID(),
    applicationId: randomUUID(),
    projectId,
    status,
    kind,
    application: 'web <b>',
    isCancelled: false,
    error: status === 'failed' ? 'the build has failed:\nexit code 1' : null
  })
}

/** The outbox has nothing more to send. */
async function mailsSent(k: TestKernel): Promise<void> {
  await delivered(k)
  await until(async () => (await k.query('select 1 from mail.message')).length === 0, 'all mail is sent')
}

test('the owner of a project is mailed what fails in it, once, and nobody else is', async t => {
  const { sink, k, ann, project } = await platform(t)
  const vic = await k.as.session('vic')
  await addMember(k, ann, project, 'vic')
  await fail(k, project, 'deploy', 'failed')
  await fail(k, project, 'build', 'failed')
  await fail(k, project, 'deploy', 'success')
  await holds(ann, 3)
  await mailsSent(k)
  const { email } = await k.user('ann')
  t.same(
    sink.box.map(({ to }) => to),
    [[email], [email]]
  )
  const [first] = sink.box.filter(({ headers }) => headers.includes('Deployment'))
  t.match(first?.headers, /Subject: Deployment of web <b> failed/)
  t.match(first?.text, /Deployment of web <b> failed \(project shop\)/)
  t.match(first?.text, /exit code 1/)
  t.match(first?.text, /https:\/\/busbar\.example\.com\/projects\/[-0-9a-f]+\/applications\//)
  t.notMatch(first?.raw, /<b> failed<\/p>/, 'nothing of it is markup')
  t.ok((await itemsOf(vic)).length >= 3, 'a member has it in the inbox')

  const id = randomUUID()
  for (const _ of [1, 2])
    await tell(k, {
      id,
      audience: toProject(project),
      preference: 'deploy_failures',
      title: 'twice delivered'
    })
  await mailsSent(k)
  t.equal(sink.box.filter(({ headers }) => headers.includes('twice delivered')).length, 1)
})

test('who has declined an alert is not mailed it, and what has no preference is not mailed', async t => {
  const { sink, k, ann, project } = await platform(t)
  await ann.put(preferences, { deploy_failures: false })
  await fail(k, project, 'deploy', 'failed')
  await fail(k, project, 'build', 'failed')
  await tell(k, { audience: toProject(project), title: 'a backup' })
  await tell(k, { audience: { kind: 'admins' }, preference: 'deploy_failures', title: 'to admins' })
  await holds(ann, 2)
  await mailsSent(k)
  t.equal(sink.box.length, 1)
  t.match(sink.box[0]?.headers, /Subject: Build of web/)
})

test('without a mail server, or while the plugin is off, alerts are in the inbox alone', async t => {
  const { sink, k, ann, project } = await platform(t, { SMTP_HOST: '' })
  await fail(k, project, 'deploy', 'failed')
  await holds(ann, 1)
  await k.disable('mail')
  await fail(k, project, 'build', 'failed')
  await holds(ann, 2)
  t.equal(sink.offered, 0)
})

test('without a public address a mail has no link', async t => {
  const { sink, k, ann, project } = await platform(t, { PUBLIC_BASE_URL: '', HOST: '0.0.0.0' })
  await fail(k, project, 'deploy', 'failed')
  await holds(ann, 1)
  await mailsSent(k)
  t.equal(sink.box.length, 1)
  t.notMatch(sink.box[0]?.text, /https?:\/\//)
})
