import { identity } from 'busbar/api/identity'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { statementsOf } from '../../../lab/statements.js'

const url = '/api/account/alert-preferences'
const defaults = {
  deploy_failures: true,
  deploy_success: true,
  build_failures: true,
  quota_threshold: true,
  quota_threshold_percent: 80
}

test('alert preferences are the defaults until they are changed, each by itself', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const ann = await k.as.session('ann')
  t.same((await ann.get(url)).body, defaults)
  t.same((await ann.put(url, {})).body, defaults)
  t.same((await ann.put(url, { deploy_success: false })).body, { ...defaults, deploy_success: false })
  t.same((await ann.put(url, { quota_threshold_percent: 95 })).body, {
    ...defaults,
    deploy_success: false,
    quota_threshold_percent: 95
  })
  t.same((await ann.put(url, {})).body, { ...defaults, deploy_success: false, quota_threshold_percent: 95 })
  t.same((await ann.get(url)).body, { ...defaults, deploy_success: false, quota_threshold_percent: 95 })
  t.same(await k.service(identity).alertPreferences(ann.userId ?? ''), {
    ...defaults,
    deploy_success: false,
    quota_threshold_percent: 95
  })
  t.same((await admin.get(url)).body, defaults, 'everybody has their own')
})

test('a percentage out of range and a wrong type are refused, and nothing is stored', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  for (const percent of [0, 101, -1]) {
    t.match(await ann.put(url, { quota_threshold_percent: percent, deploy_success: false }), {
      status: 400,
      body: { error: 'quota_threshold_percent must be between 1 and 100' }
    })
  }
  for (const body of [
    { deploy_success: 'no' },
    { deploy_success: null },
    { quota_threshold_percent: '80' },
    { quota_threshold_percent: 80.5 }
  ]) {
    t.match(
      await ann.put(url, body),
      { status: 400, body: { error: new RegExp(Object.keys(body)[0] ?? '') } },
      JSON.stringify(body)
    )
  }
  t.same((await ann.get(url)).body, defaults)
  for (const percent of [1, 100])
    t.equal((await ann.put(url, { quota_threshold_percent: percent })).status, 200)
})

test('a token reads them with read and changes them with write', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [read, write] = [
    await k.as.token('read', { user: 'ann' }),
    await k.as.token('write', { user: 'ann' })
  ]
  t.equal((await read.get(url)).status, 200)
  t.match(await read.put(url, {}), { status: 403, body: { error: 'token lacks required scope: write' } })
  t.match(await (await k.as.token('metrics', { user: 'ann' })).get(url), { status: 403 })
  t.match(await write.put(url, { build_failures: false }), { status: 200, body: { build_failures: false } })
})

test('they go with the user', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const ann = await k.as.session('ann')
  await ann.put(url, { deploy_success: false })
  t.equal((await admin.delete(`/api/users/${ann.userId ?? ''}`)).status, 200)
  t.same(await k.query('select 1 from identity.alert_preference'), [])
})

test('who has not declined an alert is found for many users in one statement', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, bob, cas] = [await k.as.session('ann'), await k.as.session('bob'), await k.as.session('cas')]
  await ann.put(url, { deploy_success: false })
  await bob.put(url, { deploy_failures: false })
  const ids = [ann, bob, cas].map(({ userId }) => userId ?? '')
  const { wanting } = k.service(identity)
  let [success, failures]: Array<readonly string[]> = []
  const statements = await statementsOf(async () => {
    success = await wanting('deploy_success', ids)
    failures = await wanting('deploy_failures', ids)
  })
  t.same([...(success ?? [])].sort(), [bob, cas].map(({ userId }) => userId).sort())
  t.same([...(failures ?? [])].sort(), [ann, cas].map(({ userId }) => userId).sort())
  t.equal(statements.filter(text => text.includes('alert_preference')).length, 2)
  t.same(await wanting('build_failures', []), [])
  await t.rejects(wanting('user_id; drop' as never, ids), {
    message: '"user_id; drop" is no alert preference'
  })
})

test('the admins are those who are it now', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const ann = await k.as.session('ann')
  const { adminIds } = k.service(identity)
  t.same(await adminIds(), [admin.userId])
  await admin.put(`/api/users/${ann.userId ?? ''}/role`, { role: 'admin' })
  t.same([...(await adminIds())].sort(), [admin.userId, ann.userId].sort())
})
