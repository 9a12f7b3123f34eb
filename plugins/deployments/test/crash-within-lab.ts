import type { Readable } from 'node:stream'
import { bounded } from 'busbar/sdk'
import type { TestClient } from 'busbar/sdk/testing'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { GitFiles } from '../../../lab/git-server.js'
import { rotatingSample, type SampleOptions } from '../../../scripts/rotating-sample.mjs'
import { type RolloutStepName, rolloutSteps } from '../api.js'
import { killWhen, startVictim, survives } from './crash-lab.js'
import { engine, type Mode, openLab, sample } from './deploy-lab.js'

/** A moment in the middle of a step. */
interface Moment {
  readonly name: string
  readonly files?: (version: string) => GitFiles
  /** None without it. */
  readonly check?: object
  /** Done first, with the platform of the lab. */
  before?(): Promise<void>
  /** Resolves when it has come. */
  come(at: {
    readonly platform: TestClient
    readonly deploymentId: string
    readonly old: string
  }): Promise<unknown>
}

const slow =
  (mode: Mode) =>
  (version: string): GitFiles =>
    sample(version, mode)

/**
 * Kills the platform in the middle of these steps of a deploy, at the moments that `always` names and at `others` more,
 * which rotate.
 */
export async function survivesDuring(
  t: Test,
  title: string,
  steps: readonly RolloutStepName[],
  sampling: SampleOptions
): Promise<void> {
  if (!(await requireEngine(t))) return
  let isGitSilent = false
  let silenced = 0
  const lab = await openLab({
    intercept: () => {
      if (isGitSilent) silenced += 1
      return isGitSilent
    }
  })
  t.teardown(() => lab.close())
  const victim = await startVictim(lab)
  const { web } = victim

  const health = async (check: object): Promise<void> => {
    const answer = await (await lab.k.as.session()).put(`${web.path}/health-check`, check)
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  }
  const atStep = async (platform: TestClient, id: string, step: RolloutStepName): Promise<unknown> =>
    await until(
      async () => (await platform.get(`${web.path}/deployments/${id}`)).body.step === step,
      `it is at ${step}`
    )
  const event = async (
    action: string,
    isMeant: (id: string, attributes: Record<string, string>) => boolean
  ): Promise<void> => {
    const stream = await engine.getEvents({
      filters: { type: ['container'], event: [action], label: [`application-id=${web.id}`] },
      since: Math.floor(Date.now() / 1000) - 1
    })
    const come = async (): Promise<void> => {
      for await (const chunk of stream) {
        for (const line of String(chunk).trim().split('\n')) {
          const { Actor: actor } = JSON.parse(line)
          if (isMeant(actor.ID, actor.Attributes)) return
        }
      }
      throw new Error(`the engine tells no more of its containers, and "${action}" has not come`)
    }
    await bounded(come, { ms: 120_000, what: `the engine, which was to tell of "${action}",` }).finally(
      () => {
        ;(stream as Readable).destroy()
      }
    )
  }
  const own = (deploymentId: string) => (_: string, attributes: Record<string, string>) =>
    attributes['deployment-id'] === deploymentId

  /** Where a step can be seen from outside to be under way; the others are one statement or one call. */
  const during: Readonly<Record<RolloutStepName, readonly Moment[]>> = {
    load: [],
    'prepare-image': [
      {
        name: 'clone',
        before: async () => {
          isGitSilent = true
          silenced = 0
        },
        come: async () => await until(() => silenced > 0, 'git waits for its server')
      },
      {
        name: 'build',
        files: version =>
          sample(
            version,
            'ok',
            `FROM node:20\nWORKDIR /app\nCOPY . .\nRUN echo ${web.slug} && sleep 600\nCMD ["node", "server.js"]\n`
          ),
        come: async () =>
          await until(
            async () =>
              (await engine.listContainers()).some(({ Command }) => Command.includes(`echo ${web.slug}`)),
            'it builds'
          )
      }
    ],
    network: [],
    create: [
      {
        name: 'create',
        files: slow('slow'),
        come: async ({ deploymentId }) => await event('create', own(deploymentId))
      }
    ],
    start: [
      {
        name: 'start',
        files: slow('slow'),
        come: async ({ deploymentId }) => await event('start', own(deploymentId))
      }
    ],
    'prove-healthy': [
      {
        name: 'proof by port',
        files: slow('silent'),
        come: async ({ platform, deploymentId }) => await atStep(platform, deploymentId, 'prove-healthy')
      },
      {
        name: 'proof by HTTP',
        files: slow('unhealthy'),
        check: { type: 'http', path: '/health', timeout_seconds: 60 },
        come: async ({ platform, deploymentId }) => await atStep(platform, deploymentId, 'prove-healthy')
      }
    ],
    switch: [
      {
        name: 'switch',
        come: async () => await event('rename', () => true)
      }
    ],
    record: [],
    drain: [
      {
        name: 'drain',
        come: async ({ platform, deploymentId }) =>
          await until(
            async () =>
              (await platform.get(`${web.path}/deployments/${deploymentId}`)).body.status === 'success',
            'it drains'
          )
      }
    ],
    'clean-up': [
      {
        name: 'clean-up, while the old version ignores SIGTERM',
        before: async () => {
          victim.serving = 'ignores-sigterm'
          await web.push(sample(victim.serving, 'ignores-sigterm'))
          await web.deployed()
          await until(
            async () => (await web.containers()).length === 1,
            'only the one that ignores SIGTERM is left',
            60_000
          )
        },
        come: async ({ old }) => await event('kill', id => id === old)
      }
    ]
  }

  const moments = rotatingSample(
    title,
    steps.flatMap(step => during[step].map(({ name }) => name)),
    sampling
  )
  for (const step of steps) {
    for (const { name, files = sample, check = { type: 'none' }, before, come } of during[step]) {
      if (!moments.has(name)) continue
      await t.test(`during ${name}`, async t => {
        await health(check)
        await before?.()
        const version = `killed during ${name}`
        const [old] = await web.containers()
        const kill = async (): Promise<string> => {
          const id = await killWhen(
            lab,
            web,
            async (platform, deploymentId) => await come({ platform, deploymentId, old: old?.Id ?? '' })
          )
          isGitSilent = false
          return id
        }
        await survives(
          t,
          victim,
          version,
          rolloutSteps.indexOf(step) >= rolloutSteps.indexOf('switch'),
          kill,
          files(version)
        )
      })
    }
  }
  t.comment(`the slowest start took ${victim.slowestMs} ms to the first answer at the direct address`)
}
