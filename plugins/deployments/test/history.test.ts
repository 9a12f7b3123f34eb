import { randomUUID } from 'node:crypto'
import { TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from './deploy-lab.js'

test('the history of deployments, and going back in it', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))

  const one = await web.deployed()
  await web.push(sample('two'), 'the second change')
  const two = await web.deployed()
  await web.push(sample('three', 'exit'), 'a broken change')
  const broken = await web.deployed()

  await t.test('the list is newest first, with the end of each log, with its count', async t => {
    const answer = await admin.get(`${web.path}/deployments`)
    t.equal(answer.headers['x-total-count'], '3')
    t.same(
      answer.body.map((row: any) => [row.id, row.status]),
      [
        [broken.id, 'failed'],
        [two.id, 'success'],
        [one.id, 'success']
      ]
    )
    for (const { id, build_logs: end } of answer.body) {
      const { build_logs: log } = (await admin.get(`${web.path}/deployments/${id}`)).body
      t.ok(log.includes('\n'))
      t.equal(end, log)
    }
    const page = await admin.get(`${web.path}/deployments?limit=1&offset=1`)
    t.same(
      page.body.map((row: any) => row.id),
      [two.id]
    )
    t.equal(page.headers['x-total-count'], '3')
  })

  await t.test('a list is unchanged until a deployment is, or the end of its log', async t => {
    const list = `${web.path}/deployments`
    // How the version before it has ended is written down when that is known, in the background.
    const isKnown = async () => (await admin.get(`${list}/${two.id}`)).body.old_version_killed !== null
    await until(isKnown, 'the end of the first version')
    let had = await admin.get(list)
    const again = async () =>
      await admin.get(list, { headers: { 'if-none-match': String(had.headers.etag) } })
    t.equal((await again()).status, 304)
    await lab.k.query(
      `insert into deployments.deployment_log (deployment_id, seq, is_tail, lines, bytes, text)
      select deployment_id, max(seq) + 1, false, 1, 3, 'new' from deployments.deployment_log where deployment_id = $1 group by 1`,
      [two.id]
    )
    const longer = await again()
    t.equal(longer.status, 200)
    t.not(longer.body[1].build_logs, had.body[1].build_logs)
    had = longer
    t.equal((await again()).status, 304)
    await lab.k.query("update deployments.deployment set error_message = 'worse' where id = $1", [broken.id])
    t.match(await again(), { status: 200, body: [{ error_message: 'worse' }] })
    await lab.k.query('update deployments.deployment set error_message = $2 where id = $1', [
      broken.id,
      broken.error_message
    ])
    await lab.k.query("delete from deployments.deployment_log where deployment_id = $1 and text = 'new'", [
      two.id
    ])
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
    const second = await admin.get('/api/deployments?limit=1&offset=1')
    t.equal(second.headers['x-total-count'], '3')
    t.same(
      second.body.map(({ id }: any) => id),
      [two.id]
    )
    t.equal((await admin.get('/api/deployments?status=success&limit=1')).headers['x-total-count'], '2')
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

  await t.test('who may not see an application is told the same of one that does not exist', async t => {
    const stranger = await lab.k.as.session('stranger')
    const unseen = await stranger.get(`/api/deployments?application_id=${web.id}`)
    t.equal(unseen.status, 404)
    const { status, body } = await stranger.get(`/api/deployments?application_id=${randomUUID()}`)
    t.same({ status, body }, { status: unseen.status, body: unseen.body })
  })
})
