import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { deploymentQueue } from '../api.js'
import { engine, openLab, sample } from './deploy-lab.js'

const slowBuild = (version: string) =>
  sample(
    version,
    'ok',
    `FROM node:20\nWORKDIR /app\nCOPY . .\nRUN echo ${version} && sleep 2\nCMD ["node", "server.js"]\n`
  )

test('several deployments, one after another', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = async () => await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  await web.deployed()
  const { direct_url: address } = await web.read()
  const served = async (): Promise<string> => await (await fetch(address)).text()

  await t.test(
    'what is asked for during a deploy makes one follow-up, of the newest commit and with the last trigger',
    async t => {
      const queue = lab.k.service(deploymentQueue)
      await web.push(slowBuild('three'))
      const first = await queue.deploySoon(web.id, 'push')
      t.ok(first)
      await until(
        async () =>
          (await (await admin()).get(`${web.path}/deployments/${first?.deploymentId ?? ''}`)).body
            .commit_sha !== null,
        'it has been cloned'
      )
      await web.push(sample('four'))
      t.equal(await queue.deploySoon(web.id, 'push'), null)
      const newest = await web.push(sample('five'))
      t.equal(await queue.deploySoon(web.id, 'hook'), null)
      await t.rejects(queue.deploy(web.id, 'push'), { status: 409, code: 'E_DEPLOYMENT_ACTIVE' })
      t.match(await web.ended(first?.deploymentId ?? ''), { status: 'success' })
      const [followUp, before] = (await (await admin()).get(`${web.path}/deployments?limit=2`)).body
      t.equal(before.id, first?.deploymentId)
      t.match(await web.ended(followUp.id), { status: 'success', triggered_by: 'hook', commit_sha: newest })
      t.equal(await served(), 'five')
      const [latest] = (await (await admin()).get(`${web.path}/deployments?limit=1`)).body
      t.equal(latest.id, followUp.id, 'there is no second follow-up')
    }
  )

  await t.test('a pending deploy is cancelled at once', async t => {
    const version = await served()
    const others = await Promise.all(
      ['x', 'y'].map(async name => await lab.application(name, slowBuild(name)))
    )
    const busy = await Promise.all(others.map(async other => await other.deploy()))
    const waiting = await web.deploy()
    const answer = await (await admin()).post(`${web.path}/deployments/${waiting.id}/cancel`)
    t.equal(answer.status, 202)
    const ended = await web.ended(waiting.id, 3000)
    t.match(ended, { status: 'failed', error_message: 'cancelled' })
    for (const [index, other] of others.entries())
      t.match(await other.ended(busy[index].id), { status: 'success' })
    t.equal(await served(), version)
  })

  await t.test('the newest ten successful deployments keep their image, older ones lose it', async t => {
    // With the one of the set-up there is one too many.
    for (let index = 0; index < 10; index += 1) {
      await web.push(sample(`r${index}`))
      t.equal((await web.deployed()).status, 'success')
    }
    const tags = async () =>
      (await engine.listImages({ filters: { label: [`application-id=${web.id}`] } })).flatMap(
        ({ RepoTags }) => RepoTags ?? []
      )
    await until(async () => (await tags()).length === 10, 'ten images are left')
    const { body } = await (await admin()).get(`${web.path}/deployments`)
    const kept = body
      .filter((row: any) => row.status === 'success')
      .slice(0, 10)
      .map((row: any) => row.image_tag)
    t.same((await tags()).sort(), kept.sort())
    t.ok(body.length > 10, 'their records stay')
  })
})
