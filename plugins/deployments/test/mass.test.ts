import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type LabApplication, openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

/** Few where tests run all the time; `MASS_DEPLOYS=50 MASS_APPLICATIONS=20` where there is time. */
const deploys = Number(process.env.MASS_DEPLOYS ?? 12)
const applications = Number(process.env.MASS_APPLICATIONS ?? 6)
const kept = 10

test('many deploys', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'] })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const bytes = async (): Promise<number> =>
    Number(((await engine.docker.df()) as { LayersSize: number }).LayersSize)
  const made: LabApplication[] = []

  await t.test(`${deploys} in a row: the newest ten images stay, and nothing else`, async t => {
    const web = await lab.application('web', sample('0'))
    made.push(web)
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

  await t.test(
    `${applications} applications at once: all serve, and the platform answers meanwhile`,
    async t => {
      const begunAt = Date.now()
      const all = await Promise.all(
        Array.from(
          { length: applications },
          async (_, index) => await lab.application(`app${index}`, sample(`app${index}`))
        )
      )
      made.push(...all)
      const begun = await Promise.all(all.map(async one => await one.deploy()))
      // Somebody else: whoever asks for the deploys that often meets the rate limit.
      const visitor = await lab.k.as.session('visitor')
      let isOver = false
      const answers: number[] = []
      const asking = (async () => {
        while (!isOver) {
          const at = performance.now()
          const { status } = await visitor.get('/api/projects')
          if (status !== 200) throw new Error(`the platform answered ${status}`)
          answers.push(performance.now() - at)
          await new Promise(resolve => setTimeout(resolve, 250))
        }
      })()
      const ended = await Promise.all(
        all.map(async (one, index) => await one.ended(begun[index].id, 240_000))
      )
      isOver = true
      await asking
      for (const one of ended) t.match(one, { status: 'success', error_message: null })
      const texts = await Promise.all(
        all.map(async one => await (await fetch((await one.read()).direct_url)).text())
      )
      t.same(
        texts,
        all.map((_, index) => `app${index}`)
      )
      await untilNothingIsLeft(lab, made, engine.docker)
      answers.sort((a, b) => a - b)
      t.comment(
        `${Date.now() - begunAt} ms; the platform answered ${answers.length} times, in ${answers[Math.floor(answers.length / 2)]?.toFixed(0)} ms (median), ${answers.at(-1)?.toFixed(0)} ms (slowest)`
      )
    }
  )
})
