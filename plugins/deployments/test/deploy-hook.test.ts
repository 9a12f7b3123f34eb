import { TestClient } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from './deploy-lab.js'

test('a deploy hook deploys without a token, and stops when it is deleted', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  const deployer = await lab.k.as.token('write')
  t.same(
    (await deployer.post(`${web.path}/deploy-hook`)).body,
    { enabled: true },
    'a token is not shown the secret'
  )
  const { body: hook } = await admin.post(`${web.path}/deploy-hook`)
  t.match(hook, { enabled: true, path: /^\/api\/webhooks\/deploy\/busbar_hook_/, token: String })
  t.same((await admin.get(`${web.path}/deploy-hook/reveal`)).body, hook)
  t.equal((await deployer.get(`${web.path}/deploy-hook/reveal`)).status, 403)
  t.same((await admin.get(`${web.path}/deploy-hook`)).body, { enabled: true })
  const made = await lab.k.query<{ action: string }>(
    `select action from kernel.audit_log where resource_id = $1 and action like '%ate_deploy_hook' order by created_at`,
    [web.id]
  )
  t.same(
    made.map(({ action }) => action),
    ['create_deploy_hook', 'regenerate_deploy_hook']
  )
  t.equal((await web.read()).deploy_hook_enabled, true)
  const nobody = new TestClient(lab.k.url)
  t.match(await nobody.post(hook.path), { status: 202, body: { status: 'queued' } })
  t.match(await nobody.post(hook.path), { status: 202, body: { status: 'in_progress' } })
  for (const wrong of ['wrong', 'a'.repeat(3000), hook.token.slice(0, -1), '%20']) {
    t.match(
      await nobody.post(`/api/webhooks/deploy/${wrong}`),
      { status: 404, body: { error: 'not found' } },
      wrong.slice(0, 60)
    )
  }
  const [latest] = (await admin.get(`${web.path}/deployments?limit=1`)).body
  t.match(await web.ended(latest.id), { status: 'success', triggered_by: 'hook', error_message: null })
  t.same((await admin.delete(`${web.path}/deploy-hook`)).body, { enabled: false })
  t.equal((await nobody.post(hook.path)).status, 404)
  t.equal((await web.read()).deploy_hook_enabled, false)
})
