import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from './deploy-lab.js'

test('deploying', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(
    process.env.LAB_LOG
      ? {
          onLog: line => {
            if (!line.includes('"debug"')) process.stderr.write(line)
          }
        }
      : {}
  )
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()

  await t.test('a deploy answers at once, and ends with a container that serves under the slug', async t => {
    const web = await lab.application('web', sample('one'))
    const begun = await web.deploy()
    t.match(begun, {
      status: 'pending',
      triggered_by: 'manual',
      build_logs: null,
      application_id: web.id,
      finished_at: null,
      error_message: null
    })
    const ended = await web.ended(begun.id)
    t.match(ended, {
      status: 'success',
      error_message: null,
      health_status: 'skipped',
      commit_message: 'first commit',
      commit_author: 'Ada Lovelace'
    })
    t.match(ended.image_tag, new RegExp(`^${web.slug}-[0-9a-f]{20}:${begun.id.slice(0, 8)}$`))
    t.ok(ended.build_started_at < ended.build_ended_at && ended.deploy_started_at <= ended.finished_at)
    for (const line of ended.build_logs.trimEnd().split('\n'))
      t.match(JSON.parse(line), { ts: /^\d{4}-.*Z$/, level: /^(debug|info|warning|error)$/, msg: String })
    t.notMatch(ended.build_logs, /beside the old one/, 'there is none yet')
    const containers = await web.containers()
    t.same(
      containers.map(({ Names }) => Names),
      [[`/${web.slug}`]]
    )
    const application = await web.read()
    t.match(application, { status: 'running', pending_change: '', direct_url: /^http:\/\/127\.0\.0\.2:\d+$/ })
    t.equal(await (await fetch(application.direct_url)).text(), 'one')

    await t.test('a second deploy replaces it at the same address, and the old container goes', async t => {
      await web.push(sample('two'))
      const second = await web.deployed()
      t.match(second, { status: 'success', commit_message: 'a change', error_message: null })
      t.match(second.build_logs, /runs beside the old one/)
      t.equal((await web.read()).direct_url, application.direct_url)
      t.equal(await (await fetch(application.direct_url)).text(), 'two')
      await until(async () => (await web.containers()).length === 1, 'the old container is removed')
      t.match(await web.containers(), [{ Names: [`/${web.slug}`], Labels: { 'deployment-id': second.id } }])
      const { body } = await admin.get(`${web.path}/deployments/${second.id}`)
      t.match(body, { switch_served: Number, switch_failed: 0, switch_cut: 0 })
    })
  })
})
