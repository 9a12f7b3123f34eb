import { randomUUID } from 'node:crypto'
import { applicationFailed } from 'busbar/api/applications'
import { type DeploymentKind, deploymentFinished } from 'busbar/api/deployments'
import { identity } from 'busbar/api/identity'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { addMember, delivered, holds, makeProject } from './inbox-lab.js'

takeAwayFromEngine()

test('the end of a deployment is told in the words of what it did, to who has not declined it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const projectId = await makeProject(ann)
  const applicationId = randomUUID()
  const finish = async (kind: DeploymentKind, error: string | null = null, isCancelled = false) => {
    await k.emit(deploymentFinished, {
      deploymentId: randomUUID(),
      applicationId,
      projectId,
      status: error === null ? 'success' : 'failed',
      kind,
      application: 'api',
      isCancelled,
      error
    })
    await delivered(k)
  }
  await finish('deploy')
  await finish('build', 'no such branch: push it')
  await finish('rollback', 'cancelled', true)
  const [failed, succeeded] = await holds(ann, 2)
  const link = `/projects/${projectId}/applications/${applicationId}/deployments`
  t.match(succeeded, { type: 'deployment.succeeded', title: 'Deployment of api succeeded', body: '', link })
  t.match(failed, {
    type: 'deployment.failed',
    title: 'Build of api failed',
    body: 'no such branch: push it',
    link
  })
  const decline = async (preferences: object) => await ann.put('/api/account/alert-preferences', preferences)
  await decline({ deploy_success: false, deploy_failures: false })
  await finish('reload')
  await finish('rebuild', 'it ended at once')
  await finish('build', 'it does not compile')
  await holds(ann, 3)
  await decline({ deploy_failures: true, build_failures: false })
  await finish('build', 'it does not compile')
  await finish('rebuild', 'it ended at once')
  const [newest] = await holds(ann, 4)
  t.match(newest, { title: 'Rebuild of api failed' })
})

test('an application that has crashed, or does not pass its check, is told', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const projectId = await makeProject(ann)
  const applicationId = randomUUID()
  const link = `/projects/${projectId}/applications/${applicationId}`
  for (const status of ['error', 'unhealthy'] as const) {
    await k.emit(applicationFailed, { applicationId, projectId, application: 'api', status })
    await delivered(k)
  }
  const told = await holds(ann, 2)
  t.match(
    told.find(({ type }) => type === 'application.crashed'),
    { title: 'api has crashed', link }
  )
  t.match(
    told.find(({ type }) => type === 'application.unhealthy'),
    { title: 'api is unhealthy', link }
  )
})

test('a new member is told, and of another role', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  const project = await makeProject(ann)
  await addMember(k, ann, project, 'vic', 'viewer')
  const [added] = await holds(vic, 1)
  t.match(added, {
    type: 'project.member_added',
    title: 'You are a member of shop',
    body: 'Your role in it is viewer.',
    link: `/projects/${project}`
  })
  await addMember(k, ann, project, 'vic', 'viewer')
  await addMember(k, ann, project, 'vic', 'editor')
  const told = await holds(vic, 2)
  t.match(
    told.find(({ type }) => type === 'project.member_role_changed'),
    { title: 'Your role in shop is editor now', body: 'It was viewer before.' }
  )
  await holds(ann, 0)
})

test('an accepted invitation is told to who has made it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { body } = await admin.post('/api/users/invite', { email: 'New@Example.com' })
  const token = new URL(body.link as string, 'http://localhost').searchParams.get('token')
  const accepted = await k.as
    .anonymous()
    .post('/api/auth/accept-invitation', { token, password: 'a sentence that is long' })
  t.equal(accepted.status, 200)
  const [told] = await holds(admin, 1)
  t.match(told, {
    type: 'account.invitation_accepted',
    title: 'new@example.com has accepted your invitation',
    body: 'There is a new user with the role member.',
    link: null
  })
})

test('a sign-in from a new place is told to who has signed in', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { email, password } = await k.user('ann')
  const login = async (ip: string, userAgent: string) =>
    await k.service(identity).login({ email, password }, { ip, userAgent })
  await login('127.0.0.1', 'curl')
  await login('203.0.113.9', '<b>Mozilla</b>\r\nX: y')
  const [told, ...others] = await holds(ann, 1)
  t.same(others, [])
  t.match(told, {
    type: 'account.new_sign_in',
    title: 'New sign-in from 203.0.113.9',
    body: 'It was made with <b>Mozilla</b> \nX: y. If it was not you, change your password, which ends all other sessions.'
  })
})
