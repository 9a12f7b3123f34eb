import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

/** Few where tests run all the time; `MASS_DEPLOYS=50` where there is time. */
const deploys = Number(process.env.MASS_DEPLOYS ?? 12)
const kept = 10

test(`${deploys} deploys in a row: the newest ten images stay, and nothing else`, async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'] })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const bytes = async (): Promise<number> =>
    Number(((await engine.docker.df()) as { LayersSize: number }).LayersSize)
  const web = await lab.application('web', sample('0'))
  const sizes = [await bytes()]
  for (let index = 0; index < deploys; index += 1) {
    await web.push({ ...sample(String(index)), 'data.bin': Buffer.alloc(1_000_000, index) })
    t.match(await web.deployed(), { status: 'success' })
    if (index % 10 === 9) sizes.push(await bytes())
  }
  await untilNothingIsLeft(lab, [web], engine.docker)
  const images = async () =>
    (await engine.docker.listImages({ filters: { label: [`application-id=${web.id}`] } })).flatMap(
      ({ RepoTags }) => RepoTags ?? []
    )
  await until(async () => (await images()).length === Math.min(kept, deploys), 'ten images are left')
  const { body } = await admin.get(`${web.path}/deployments?limit=200`)
  t.equal(body.length, deploys, 'every deploy has its record')
  sizes.push(await bytes())
  t.comment(`layers on the engine, MB: ${sizes.map(size => (size / 1e6).toFixed(1)).join(' ')}`)
  // Each version has 1 MB of its own.
  t.ok((sizes.at(-1) ?? 0) - (sizes[0] ?? 0) < (kept + 2) * 1_100_000, 'the disk holds what is kept')
  t.equal(await (await fetch((await web.read()).direct_url)).text(), String(deploys - 1))
})
