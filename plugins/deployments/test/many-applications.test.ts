import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

/** Few where tests run all the time; `MASS_APPLICATIONS=20` where there is time. */
const applications = Number(process.env.MASS_APPLICATIONS ?? 6)

test(`${applications} applications at once: all serve, and the platform answers meanwhile`, async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'] })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  const begunAt = Date.now()
  const all = await Promise.all(
    Array.from(
      { length: applications },
      async (_, index) => await lab.application(`app${index}`, sample(`app${index}`))
    )
  )
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
  const ended = await Promise.all(all.map(async (one, index) => await one.ended(begun[index].id, 240_000)))
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
  await untilNothingIsLeft(lab, all, engine.docker)
  answers.sort((a, b) => a - b)
  t.comment(
    `${Date.now() - begunAt} ms; the platform answered ${answers.length} times, in ${answers[Math.floor(answers.length / 2)]?.toFixed(0)} ms (median), ${answers.at(-1)?.toFixed(0)} ms (slowest)`
  )
})
