import { randomUUID } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('going back in the history of deployments', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  const served = async (): Promise<string> => await (await fetch((await web.read()).direct_url)).text()

  const one = await web.deployed()
  await web.push(sample('two'), 'the second change')
  t.match(await web.deployed(), { status: 'success' })
  /** Whatever has run before, this version serves. */
  const serve = async ({ id }: { readonly id: string }): Promise<void> => {
    const answer = await admin.post(`${web.path}/rollback`, { deployment_id: id })
    t.match(await web.ended(answer.body.id), { status: 'success' })
  }

  await t.test("a rollback serves the old image with today's settings", async t => {
    await web.push(sample('three', 'exit'), 'a broken change')
    const broken = await web.deployed()
    await admin.put(`${web.path}/env`, { vars: [{ key: 'COLOUR', value: 'blue' }] })
    const answer = await admin.post(`${web.path}/rollback`, { deployment_id: one.id })
    t.match(answer, {
      status: 202,
      body: {
        triggered_by: 'rollback',
        kind: 'rollback',
        image_tag: one.image_tag,
        commit_sha: one.commit_sha
      }
    })
    const ended = await web.ended(answer.body.id)
    t.match(ended, {
      status: 'success',
      image_tag: one.image_tag,
      build_started_at: null,
      deploy_started_at: String
    })
    t.equal(await served(), 'one')
    t.match(await (await fetch(`${(await web.read()).direct_url}/env`)).json(), { COLOUR: 'blue' })
    t.match(await admin.post(`${web.path}/rollback`, { deployment_id: broken.id }), {
      status: 400,
      body: { code: 'E_ROLLBACK_UNSUCCESSFUL' }
    })
    t.match(await admin.post(`${web.path}/rollback`, { deployment_id: randomUUID() }), {
      status: 400,
      body: { code: 'E_ROLLBACK_FOREIGN' }
    })
    t.match(await admin.post(`${web.path}/rollback`, {}), { status: 400 })
  })

  await t.test(
    'a reload serves the same image with changed settings, and clears only that change',
    async t => {
      await serve(one)
      await admin.put(`${web.path}/env`, { vars: [{ key: 'COLOUR', value: 'red' }] })
      await admin.put(web.path, { branch: 'main2' })
      const answer = await admin.post(`${web.path}/reload`)
      t.match(answer, { status: 202, body: { triggered_by: 'reload' } })
      t.match(await web.ended(answer.body.id), { status: 'success', image_tag: one.image_tag })
      t.equal(await served(), 'one')
      t.match(await (await fetch(`${(await web.read()).direct_url}/env`)).json(), { COLOUR: 'red' })
      t.equal((await web.read()).pending_change, 'source')
      await admin.put(web.path, { branch: 'main' })
    }
  )

  await t.test('a rebuild builds the commit of the last success, not the newest', async t => {
    await serve(one)
    const answer = await admin.post(`${web.path}/rebuild`)
    t.match(answer, { status: 202, body: { triggered_by: 'rebuild', commit_sha: one.commit_sha } })
    const ended = await web.ended(answer.body.id)
    t.match(ended, { status: 'success', commit_sha: one.commit_sha })
    t.not(ended.image_tag, one.image_tag)
    t.equal(await served(), 'one')
  })

  await t.test('a build leaves the container alone', async t => {
    await serve(one)
    await web.push(sample('four'), 'the fourth change')
    await until(async () => (await web.containers()).length === 1, 'the old version is gone')
    const before = await web.containers()
    const answer = await admin.post(`${web.path}/build`)
    t.match(answer, { status: 202, body: { triggered_by: 'manual', kind: 'build' } })
    const ended = await web.ended(answer.body.id)
    t.match(ended, {
      status: 'success',
      image_tag: String,
      deploy_started_at: null,
      health_status: null,
      commit_message: 'the fourth change'
    })
    t.same(
      (await web.containers()).map(({ Id }) => Id),
      before.map(({ Id }) => Id)
    )
    t.equal(await served(), 'one')
    t.match(
      (await admin.get(`${web.path}/health`)).body,
      { status: 'skipped', deploy_status: 'success', checked_at: String },
      'the health is that of the container'
    )
    t.not((await admin.get(`${web.path}/health`)).body.deployment_id, ended.id)
    const rolled = await admin.post(`${web.path}/rollback`, { deployment_id: ended.id })
    t.match(await web.ended(rolled.body.id), { status: 'success' })
    t.equal(await served(), 'four', 'what was built can be rolled out')
  })

  await t.test('the image of a rollback target that is gone is a 409', async t => {
    await web.push(sample('gone'), 'a change whose image goes')
    const gone = await web.deployed()
    await serve(one)
    await until(async () => (await web.containers()).length === 1, 'the old version is gone')
    await engine.getImage(gone.image_tag).remove({ force: true })
    t.match(await admin.post(`${web.path}/rollback`, { deployment_id: gone.id }), {
      status: 409,
      body: { code: 'E_DEPLOYMENT_IMAGE_GONE' }
    })
  })
})
