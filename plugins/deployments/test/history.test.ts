import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { containersOf, engine, openLab, sample } from './deploy-lab.js'

test('the history of deployments, and going back in it', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  const served = async (): Promise<string> => await (await fetch((await web.read()).direct_url)).text()

  const one = await web.deployed()
  await web.push(sample('two'), 'the second change')
  const two = await web.deployed()
  await web.push(sample('three', 'exit'), 'a broken change')
  const broken = await web.deployed()

  await t.test('the list is newest first, without logs, with its count', async t => {
    const answer = await admin.get(`${web.path}/deployments`)
    t.equal(answer.headers['x-total-count'], '3')
    t.same(
      answer.body.map((row: any) => [row.id, row.status, row.build_logs]),
      [
        [broken.id, 'failed', null],
        [two.id, 'success', null],
        [one.id, 'success', null]
      ]
    )
    const page = await admin.get(`${web.path}/deployments?limit=1&offset=1`)
    t.same(
      page.body.map((row: any) => row.id),
      [two.id]
    )
    t.equal(page.headers['x-total-count'], '3')
  })

  await t.test('the global list is filtered by what the query names', async t => {
    const ids = async (query: string): Promise<string[]> =>
      (await admin.get(`/api/deployments?${query}`)).body.map((row: any) => row.id)
    const [row] = (await admin.get('/api/deployments')).body
    t.match(row, {
      id: broken.id,
      application_id: web.id,
      application_name: 'web',
      application_slug: web.slug,
      project_id: lab.projectId,
      project_name: 'Lab',
      status: 'failed',
      build_logs: null,
      commit_message: 'a broken change'
    })
    t.notOk('health_status' in row)
    t.same(await ids('status=success'), [two.id, one.id])
    t.same(await ids('status=nonsense'), [])
    t.same(await ids('search=SECOND'), [two.id])
    t.same(await ids('search=%25'), [], 'a wildcard is taken literally')
    t.same(await ids(`search=${two.commit_sha.slice(3, 12)}`), [two.id])
    t.same(
      await ids(`from=${encodeURIComponent(two.started_at)}&to=${encodeURIComponent(broken.started_at)}`),
      [two.id],
      'from is inclusive, to is not'
    )
    t.same(await ids(`application_id=${web.id}&project_id=${lab.projectId}&limit=1&offset=2`), [one.id])
    t.equal((await ids('limit=junk')).length, 3)
    t.match(await admin.get('/api/deployments?from=yesterday'), {
      status: 400,
      body: { error: /from must be an RFC 3339 time/ }
    })
    t.match(await admin.get('/api/deployments?project_id=junk'), { status: 400 })
    t.match(await admin.get(`/api/deployments?project_id=${randomUUID()}`), { status: 404 })
    t.match(await admin.get(`/api/deployments?application_id=${randomUUID()}`), { status: 404 })
  })

  await t.test('others see what they may see', async t => {
    const member = await lab.k.as.session('member')
    t.same((await member.get('/api/deployments')).body, [])
    t.equal((await member.get(`/api/deployments?project_id=${lab.projectId}`)).status, 404)
    t.equal((await member.get(`/api/deployments?application_id=${web.id}`)).status, 404)
    for (const path of ['deployments', `deployments/${one.id}`, `deployments/${one.id}/build-logs`])
      t.equal((await member.get(`${web.path}/${path}`)).status, 404)
    const elsewhere = (await admin.post('/api/projects', { name: 'Else', slug: `else-${Date.now()}` })).body
      .id
    const pinned = await lab.k.as.token('deploy', { pins: [elsewhere] })
    t.same((await pinned.get('/api/deployments')).body, [])
    t.equal((await pinned.get(`/api/deployments?project_id=${lab.projectId}`)).status, 403)
    t.equal((await pinned.get(`/api/deployments?application_id=${web.id}`)).status, 403)
    t.equal((await pinned.post(`${web.path}/deploy`)).status, 403)
    t.equal((await admin.get(`/api/projects/${elsewhere}/applications/${web.id}/deployments`)).status, 404)
    const reader = await lab.k.as.token('read')
    t.equal((await reader.get(`${web.path}/deployments/${one.id}`)).status, 200)
    for (const path of ['deploy', 'reload', 'rebuild', 'build', 'rollback', `deployments/${one.id}/cancel`])
      t.equal((await reader.post(`${web.path}/${path}`, {})).status, 403, path)
    t.equal((await new TestClient(lab.k.url).get('/api/deployments')).status, 401)
    const other = await lab.application('other', sample('x'))
    t.equal(
      (await admin.get(`${other.path}/deployments/${one.id}`)).status,
      404,
      'a deployment of another application'
    )
    t.equal((await admin.post(`${other.path}/deployments/${one.id}/cancel`)).status, 404)
    t.match(await admin.post(`${other.path}/rollback`, { deployment_id: one.id }), {
      status: 400,
      body: { code: 'E_ROLLBACK_FOREIGN' }
    })
    t.match(await admin.post(`${other.path}/reload`), { status: 409 })
    t.match(await admin.post(`${other.path}/rebuild`), { status: 409 })
    const socket = await lab.k.socket(member)
    socket.subscribe(`build-logs:${one.id}`)
    t.match((await socket.next(frame => frame.event === 'error')).data, { error: 'access denied' })
    await socket.close()
  })

  await t.test("a rollback serves the old image with today's settings", async t => {
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
    const answer = await admin.post(`${web.path}/rebuild`)
    t.match(answer, { status: 202, body: { triggered_by: 'rebuild', commit_sha: one.commit_sha } })
    const ended = await web.ended(answer.body.id)
    t.match(ended, { status: 'success', commit_sha: one.commit_sha })
    t.not(ended.image_tag, one.image_tag)
    t.equal(await served(), 'one')
  })

  await t.test('a build leaves the container alone', async t => {
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

  await t.test('an image application is deployed from its image, pinned, and cannot be rebuilt', async t => {
    const image = await buildImage('served from an image')
    const answer = await admin.post(`/api/projects/${lab.projectId}/applications`, {
      name: 'img',
      type: 'image',
      build_type: 'image',
      source_image: image
    })
    t.equal(answer.status, 201)
    const path = `/api/projects/${lab.projectId}/applications/${answer.body.id}`
    const { body: begun } = await admin.post(`${path}/deploy`)
    let ended = begun
    await until(async () => {
      ended = (await admin.get(`${path}/deployments/${begun.id}`)).body
      return ended.status === 'success' || ended.status === 'failed'
    }, 'it has ended')
    t.match(ended, {
      status: 'success',
      error_message: null,
      image_tag: /^sha256:/,
      commit_sha: null,
      container_port: 8085,
      health_status: 'skipped'
    })
    t.match(ended.build_logs, /is used as it is/)
    t.equal(await (await fetch((await admin.get(path)).body.direct_url)).text(), 'served from an image')
    t.match(await admin.post(`${path}/rebuild`), {
      status: 400,
      body: { code: 'E_DEPLOYMENT_REBUILD_IMAGE' }
    })
    t.match(await admin.post(`${path}/reload`), { status: 202 })
    t.equal((await admin.delete(path)).status, 200)
    await until(async () => (await containersOf(answer.body.id)).length === 0, 'its containers are gone')
    t.ok(await engine.getImage(image).inspect(), 'an image that was not built for it stays')
    await engine.getImage(image).remove({ force: true })
  })

  await t.test('the image of a rollback target that is gone is a 409', async t => {
    await engine.getImage(two.image_tag).remove({ force: true })
    t.match(await admin.post(`${web.path}/rollback`, { deployment_id: two.id }), {
      status: 409,
      body: { code: 'E_DEPLOYMENT_IMAGE_GONE' }
    })
  })

  await t.test('who may not see an application is told the same of one that does not exist', async t => {
    const stranger = await lab.k.as.session('stranger')
    const unseen = await stranger.get(`/api/deployments?application_id=${web.id}`)
    t.equal(unseen.status, 404)
    const { status, body } = await stranger.get(`/api/deployments?application_id=${randomUUID()}`)
    t.same({ status, body }, { status: unseen.status, body: unseen.body })
  })

  await t.test('a deploy hook deploys without a token, and stops when it is deleted', async t => {
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

  await t.test('a deleted application takes everything with it, even in the middle of a deploy', async t => {
    await web.push(sample('never', 'ok', 'FROM node:20\nRUN sleep 600\n'))
    const deployment = await web.deploy()
    await until(
      async () => (await admin.get(`${web.path}/deployments/${deployment.id}`)).body.status === 'building',
      'it is building'
    )
    t.equal((await admin.delete(web.path)).status, 200)
    t.equal((await admin.get(`${web.path}/deployments`)).status, 404)
    t.equal((await admin.post(`${web.path}/deploy-hook`)).status, 404)
    t.equal((await admin.get(`/api/deployments?application_id=${web.id}`)).status, 404)
    await until(async () => (await web.containers()).length === 0, 'the containers are gone')
    await until(
      async () =>
        (await engine.listImages({ filters: { label: [`application-id=${web.id}`] } })).length === 0,
      'the images are gone'
    )
  })
})

/** An image as somebody else would have made it: it names its port by EXPOSE. */
async function buildImage(text: string): Promise<string> {
  const tag = `busbar-test-image:${randomUUID().slice(0, 8)}`
  const directory = await mkdtemp(join(tmpdir(), 'busbar-image-'))
  const server = `require('node:http').createServer((q, s) => s.end(${JSON.stringify(text)})).listen(8085, '0.0.0.0')`
  await writeFile(join(directory, 'server.js'), server)
  await writeFile(
    join(directory, 'Dockerfile'),
    'FROM node:20\nCOPY server.js /server.js\nEXPOSE 8085\nCMD ["node", "/server.js"]\n'
  )
  const stream = await engine.buildImage({ context: directory, src: ['Dockerfile', 'server.js'] }, { t: tag })
  await new Promise<void>((resolve, reject) =>
    engine.modem.followProgress(stream, error => (error === null ? resolve() : reject(error)))
  )
  await rm(directory, { recursive: true })
  return tag
}
