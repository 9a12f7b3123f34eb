import { randomUUID } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('what runs and the newest ten successes keep record and image, however many failures came since', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  const serving = await web.deployed()
  // As earlier releases named images: those are kept, removed and run again as all others.
  const tagOf = (id: string): string =>
    id === serving.id ? serving.image_tag : `${web.slug}:${id.slice(0, 8)}`
  const record = async (status: 'success' | 'failed', age: number) => {
    const id = randomUUID()
    const at = new Date(Date.parse(serving.finished_at) - age)
    await lab.k.query(
      `
      insert into deployments.deployment (id, project_id, application_id, kind, status, triggered_by, image_tag, started_at, finished_at)
      values ($1, $2, $3, 'deploy', $4, 'manual', $5, $6, $6)`,
      [id, lab.projectId, web.id, status, status === 'success' ? tagOf(id) : null, at]
    )
    if (status === 'success')
      await engine.getImage(serving.image_tag).tag({ repo: web.slug, tag: id.slice(0, 8) })
    return id
  }
  // What serves is older than all others: somebody has rolled back to it.
  await lab.k.query('update deployments.deployment set started_at = $2 where id = $1', [
    serving.id,
    new Date(Date.parse(serving.started_at) - 1_000_000)
  ])
  const successes: string[] = []
  for (let n = 0; n < 12; n++) successes.push(await record('success', 500_000 - n))
  for (let n = 0; n < 205; n++) await record('failed', 100_000 - n)

  // Pieces of whole lines, as they are written: 40 lines of 1000 bytes.
  const lineOf = (n: number) => `{"msg":"${String(n).padStart(4, '0')}${'ä'.repeat(492)}"}\n`
  const logged = await lab.k.query(
    `insert into deployments.deployment_log (deployment_id, seq, is_tail, lines, bytes, text)
    select d.id, piece.seq, false, 10, octet_length(piece.text), piece.text
    from deployments.deployment d, unnest($2::text[]) with ordinality as piece(text, seq)
    where d.application_id = $1 and d.id <> $3 returning deployment_id`,
    [
      web.id,
      [0, 10, 20, 30].map(from => Array.from({ length: 10 }, (_, n) => lineOf(from + n)).join('')),
      serving.id
    ]
  )
  t.ok(logged.length > 800)
  const listed = (await admin.get(`${web.path}/deployments?limit=25`)).body
  const end = Array.from({ length: 16 }, (_, n) => lineOf(24 + n)).join('')
  t.same(
    listed.map((row: any) => row.build_logs),
    [...Array(20).fill(end), ...Array(5).fill(null)],
    'whole lines at the end of the newest 20, 16 KiB at most'
  )
  t.same(
    (await admin.get(`${web.path}/deployments?limit=3&offset=18`)).body.map((row: any) => row.build_logs),
    [end, end, null]
  )

  await web.push(sample('bad', 'ok', 'FROM node:20\nRUN exit 1\n'))
  t.match(await web.deployed(), { status: 'failed' })
  const tags = async () =>
    (await engine.listImages({ filters: { label: [`application-id=${web.id}`] } })).flatMap(
      ({ RepoTags }) => RepoTags ?? []
    )
  const kept = [serving.id, ...successes.slice(2)]
  await until(async () => !(await tags()).includes(tagOf(successes[1] ?? '')), 'the older images are gone')
  for (const id of kept) t.ok((await tags()).includes(tagOf(id)), 'the image is there')
  await until(
    async () => (await admin.get(`${web.path}/deployments/${successes[0] ?? ''}`)).status === 404,
    'the older records are gone'
  )
  for (const id of kept) t.equal((await admin.get(`${web.path}/deployments/${id}`)).status, 200)
  const { body, headers } = await admin.get(`${web.path}/deployments`)
  t.equal(body.length, 200 + kept.length, 'the newest 200, and what is kept beyond them')
  t.equal(headers['x-total-count'], String(body.length))
  const rolled = await admin.post(`${web.path}/rollback`, { deployment_id: successes[2] })
  t.match(await web.ended(rolled.body.id), { status: 'success' }, 'the tenth is within reach')

  const isCleanedUp = async () =>
    (await lab.k.query("select from graphile_worker.jobs where task_identifier = 'deployments:cleanup'"))
      .length === 0
  const cleanUp = async () => {
    await lab.k.enqueue('deployments', 'cleanup', { applicationId: web.id })
    await until(isCleanedUp, 'the application is cleaned up')
  }
  await until(isCleanedUp, 'everything is cleaned up after the rollback')

  // A build has given its image its name, and the record does not say so yet.
  const building = randomUUID()
  const [repo = '', left] = [web.slug, 'deadbeef']
  const its = `${repo}:${building.slice(0, 8)}`
  await lab.k.query(
    `
    insert into deployments.deployment (id, project_id, application_id, kind, status, triggered_by, started_at, seen_at)
    values ($1, $2, $3, 'deploy', 'building', 'manual', now() - interval '1 second', now())`,
    [building, lab.projectId, web.id]
  )
  for (const tag of [building.slice(0, 8), left]) await engine.getImage(serving.image_tag).tag({ repo, tag })
  await cleanUp()
  t.ok((await tags()).includes(its), 'the image of a deployment that is under way is kept')
  t.notOk((await tags()).includes(`${repo}:${left}`), 'one of nobody is not')
  await lab.k.query("update deployments.deployment set status = 'failed' where id = $1", [building])
  await cleanUp()
  t.notOk((await tags()).includes(its), 'nor is that of a deployment that has failed')
})
