import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { requireSecondEngine, type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { rolloutSteps } from '../api.js'
import { createBoundaryHook } from './boundary-hook.js'
import { killWhen, stateOf } from './crash-lab.js'
import { type DeployLab, type LabApplication, openLab, sample } from './deploy-lab.js'

import { untilNothingIsLeft } from './leftovers.js'

const boundaryHook = createBoundaryHook()

/** One application on an engine that is killed, and what it serves. */
interface Scene {
  readonly t: Test
  readonly liveRestore: boolean
  readonly engine: SecondEngine
  readonly lab: DeployLab
  readonly web: LabApplication
  /** The version that is to answer. */
  serving: string
  answer(): Promise<string>
  /** The engine is back; however the deploy has ended, all is well again soon. */
  isWell(t: Test, version: string, deploymentId: string, before: object[]): Promise<void>
}

/** The version that answers; '' while none does. */
const answerOf = async (address: string): Promise<string> =>
  await fetch(address).then(
    async response => (response.ok ? await response.text() : ''),
    () => ''
  )

/**
 * A platform on an engine of its own, with one version deployed, for `run`. With `liveRestore` containers outlive the
 * engine.
 */
export async function surviveEngine(
  t: Test,
  liveRestore: boolean,
  run: (scene: Scene) => Promise<void>
): Promise<void> {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'], liveRestore })
  t.teardown(() => engine.close())
  const lab = await openLab({
    environment: engine.environment,
    docker: engine.docker,
    inline: [boundaryHook.inline]
  })
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('v0'))
  t.match(await web.deployed(), { status: 'success', error_message: null })
  const address: string = (await web.read()).direct_url
  let slowestMs = 0
  const scene: Scene = {
    t,
    liveRestore,
    engine,
    lab,
    web,
    serving: 'v0',
    answer: async () => await answerOf(address),
    async isWell(t, version, deploymentId, before) {
      const backAt = Date.now()
      const ended = await web.ended(deploymentId, 120_000)
      t.match(ended, { finished_at: String, build_ended_at: String })
      if (ended.status === 'success') scene.serving = version
      else
        t.match(
          ended.error_message,
          /Docker Engine/,
          `it says that the engine is at fault: ${ended.error_message}`
        )
      await untilServing(scene)
      slowestMs = Math.max(slowestMs, Date.now() - backAt)
      await untilNothingIsLeft(lab, [web], engine.docker)
      await until(async () => (await web.read()).status === 'running', 'the status is right', 30_000)
      t.match(await web.read(), { status: 'running', direct_url: address })
      t.equal(await answerOf(address), scene.serving)
      const now = await stateOf(web, engine.docker)
      t.match(now, [{ Name: `/${web.slug}`, isRunning: true }])
      // What the engine has started again is the same container; where they live on, it has not even noticed.
      if (ended.status === 'failed')
        t.match(now, liveRestore ? before : before.map(one => ({ ...one, startedAt: String })))
    }
  }
  await run(scene)
  t.comment(`at most ${slowestMs} ms from the return of the engine to the answer of the version that serves`)
}

const untilServing = async (scene: Scene): Promise<void> => {
  await until(async () => (await scene.answer()) === scene.serving, `${scene.serving} answers`, 60_000)
}

/** Kills the engine at boundaries between two steps of a deploy. */
export async function killAfterSteps(scene: Scene): Promise<void> {
  const { t, liveRestore, engine, lab, web } = scene
  // The engine is away when the new container is to be started, proven, and when the old one is to go.
  const steps = rotatingSample(
    `kill -9 of an engine ${liveRestore ? 'whose containers live on' : 'whose containers go with it'}, after a step`,
    rolloutSteps,
    { always: ['start', 'switch'], others: 1 }
  )
  for (const step of rolloutSteps.filter(one => steps.has(one))) {
    await t.test(`after ${step}`, async t => {
      const version = `killed after ${step}`
      await web.push(sample(version))
      const before = await stateOf(web, engine.docker)
      const reached = boundaryHook.at(`after ${step}`, async () => {
        await engine.kill()
      })
      const { id } = await web.deploy()
      await reached
      if (liveRestore) t.not(await scene.answer(), '', 'requests are answered while the engine is away')
      // Before it is back the deploy has met its absence, or is over.
      await until(
        async () =>
          ['failed', 'success'].includes(
            (await lab.k.as.session().then(async admin => await admin.get(`${web.path}/deployments/${id}`)))
              .body.status
          ),
        'it has ended',
        60_000
      )
      await engine.start()
      await scene.isWell(t, version, id, before)
    })
  }
}

/** Kills it in the middle of the long steps. */
export async function killDuringSteps(scene: Scene): Promise<void> {
  const { t, liveRestore, engine, lab, web } = scene
  await t.test('in the middle of a build', async t => {
    await web.push(sample('never built', 'ok', 'FROM node:20\nRUN echo endless && sleep 600\n'))
    const before = await stateOf(web, engine.docker)
    const { id } = await web.deploy()
    await until(
      async () =>
        (await engine.docker.listContainers()).some(({ Command }) => Command.includes('echo endless')),
      'it builds'
    )
    await engine.kill()
    await engine.start()
    await scene.isWell(t, 'never built', id, before)
  })

  await t.test('while the new version is being proven healthy, and back at once', async t => {
    await web.push(sample('never healthy', 'silent'))
    const before = await stateOf(web, engine.docker)
    const { id } = await web.deploy()
    await until(
      async () =>
        (await (await lab.k.as.session()).get(`${web.path}/deployments/${id}`)).body.step === 'prove-healthy',
      'it is being proven'
    )
    await engine.kill()
    await engine.start()
    const ended = await web.ended(id, 60_000)
    t.match(ended, {
      status: 'failed',
      step: 'prove-healthy',
      error_message: liveRestore ? /Docker Engine|nothing listened/ : /Docker Engine/
    })
    await untilServing(scene)
    await untilNothingIsLeft(lab, [web], engine.docker)
    if (liveRestore) t.match(await stateOf(web, engine.docker), before)
  })
}

/** Kills it beside something else that ends: the application, or the platform. */
export async function killWithOthers(scene: Scene): Promise<void> {
  const { t, engine, lab, web } = scene
  await t.test('an application that a person has stopped stays so', async t => {
    const admin = await lab.k.as.session()
    await web.push(sample('never listens', 'silent'))
    t.equal((await admin.post(`${web.path}/stop`)).status, 200)
    // The engine has not written the stop down yet: what is meant of the container it has.
    await engine.kill()
    await engine.start()
    await until(async () => (await web.containers()).length === 1, 'the engine is back')
    t.equal((await admin.post(`${web.path}/deploy`)).status, 202)
    const [latest] = (await admin.get(`${web.path}/deployments?limit=1`)).body
    t.match(await web.ended(latest.id, 60_000), { status: 'failed' }, 'the last one pushed never listens')
    t.match(await web.read(), { status: /stopped|error/, direct_url: null })
    scene.serving = 'at last'
    await web.push(sample(scene.serving))
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await scene.answer(), 'at last')
  })

  await t.test('killed together with the platform', async t => {
    await web.push(sample('never serves'))
    await lab.k.stop()
    const id = await killWhen(
      lab,
      web,
      async (_platform, _id, reached) => {
        await reached
        await engine.kill()
      },
      'after prove-healthy',
      engine.environment
    )
    await engine.start()
    await lab.restart()
    t.match(await web.ended(id, 60_000), { status: 'failed', error_message: /the platform stopped/ })
    await untilServing(scene)
    await untilNothingIsLeft(lab, [web], engine.docker)
    await until(async () => (await web.read()).status === 'running', 'the status is right', 30_000)
  })
}
