import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TestClient } from 'busbar/sdk/testing'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { GitFiles } from '../../../lab/git-server.js'
import { rotatingSample } from '../../../lab/rotating-sample.js'
import { type RolloutStepName, rolloutSteps } from '../api.js'
import { killWhen, startVictim, survives } from './crash-lab.js'
import { engine, type Mode, openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

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

test('kill -9 of the platform in the middle of a step of a deploy', async t => {
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
  const { web, address } = victim

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
    for await (const chunk of stream) {
      for (const line of String(chunk).trim().split('\n')) {
        const { Actor: actor } = JSON.parse(line)
        if (isMeant(actor.ID, actor.Attributes)) return
      }
    }
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

  // What a build leaves, a container that is not proven, and two names that change.
  const moments = rotatingSample(
    'kill -9 of the platform during a step',
    Object.values(during).flatMap(those => those.map(({ name }) => name)),
    { always: ['build', 'proof by port', 'switch'], others: 1 }
  )
  for (const step of rolloutSteps) {
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

  await t.test('during a pull', async t => {
    const sockets = new Set<Socket>()
    const registry = createServer(socket => {
      sockets.add(socket.on('error', () => {}))
    })
    await new Promise<void>(resolve => registry.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      registry.close()
      for (const socket of sockets) socket.destroy()
    })
    const image = `127.0.0.1:${(registry.address() as AddressInfo).port}/silent:1`
    const pulled = await lab.application(
      'pulled',
      {},
      { type: 'image', build_type: 'image', source_image: image, source_repo: undefined, branch: undefined }
    )
    await lab.k.stop()
    const deploymentId = await killWhen(
      lab,
      pulled,
      async () => await until(() => sockets.size > 0, 'the engine asks the registry')
    )
    await lab.restart()
    t.match(await pulled.ended(deploymentId), {
      status: 'failed',
      error_message: /the platform stopped while this deployment was at the step prepare-image/
    })
    t.match(await pulled.read(), { status: 'error', direct_url: null })
    await untilNothingIsLeft(lab, [web, pulled])
    t.equal(await (await fetch(address)).text(), victim.serving)
  })

  t.comment(`the slowest start took ${victim.slowestMs} ms to the first answer at the direct address`)
})
