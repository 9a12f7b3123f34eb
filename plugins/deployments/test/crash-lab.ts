import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { bounded } from 'busbar/sdk'
import { TestClient } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import type { GitFiles } from '../../../lab/git-server.js'
import { ProgramLines } from '../../../lab/program-lines.js'
import type { RolloutBoundary } from '../api.js'
import { type DeployLab, engine, type LabApplication, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

/** As long as a test waits for the end of a deployment. */
const reachedMs = 180_000

/** An application of a platform that is killed, and what it serves. */
interface Victim {
  readonly lab: DeployLab
  readonly web: LabApplication
  readonly address: string
  /** The version that answers. */
  serving: string
  slowestMs: number
}

/** The first version of an application is deployed. */
export async function startVictim(lab: DeployLab): Promise<Victim> {
  const web = await lab.application('web', sample('v0'))
  const { status, error_message: reason } = await web.deployed()
  if (status !== 'success') throw new Error(reason)
  return { lab, web, address: (await web.read()).direct_url, serving: 'v0', slowestMs: 0 }
}

/**
 * `kill` deploys `version` and kills the platform; it is started again, and everything is as it should be: the
 * deployment is finished, or has failed and has left the old container alone.
 */
export async function survives(
  t: Test,
  victim: Victim,
  version: string,
  isFinished: boolean,
  kill: () => Promise<string>,
  files: GitFiles = sample(version)
): Promise<void> {
  const { lab, web, address } = victim
  await web.push(files)
  const before = await stateOf(web)
  await lab.k.stop()
  const deploymentId = await kill()
  const restartedAt = Date.now()
  await lab.restart()
  const answer = await (await fetch(address)).text()
  const answeredMs = Date.now() - restartedAt
  victim.slowestMs = Math.max(victim.slowestMs, answeredMs)
  t.ok(answeredMs < 15_000, `requests are forwarded ${answeredMs} ms after the start`)
  t.ok(answer === victim.serving || (isFinished && answer === version), `${answer} answers`)

  const ended = await web.ended(deploymentId)
  t.match(
    ended,
    isFinished
      ? { status: 'success', error_message: null, finished_at: String }
      : {
          status: 'failed',
          error_message: /the platform stopped while this deployment was at the step/,
          finished_at: String
        }
  )
  if (isFinished) victim.serving = version
  await untilNothingIsLeft(lab, [web])
  if (!isFinished) t.same(await stateOf(web), before, 'the old container has not been touched')
  t.equal(await (await fetch(address)).text(), victim.serving)
  t.match(await web.read(), { status: 'running', direct_url: address })
}

/** What says that a container is the one it was. */
export async function stateOf(application: LabApplication, docker = engine): Promise<object[]> {
  return await Promise.all(
    (await application.containers()).map(async ({ Id }) => {
      const { Name, State } = await docker.getContainer(Id).inspect()
      return { Id, Name, startedAt: State.StartedAt, isRunning: State.Running }
    })
  )
}

/** Runs the platform in a process of its own, deploys, and kills it at `boundary`; the deployment's id. */
export const killAt = async (
  lab: DeployLab,
  application: LabApplication,
  boundary: RolloutBoundary
): Promise<string> =>
  await killWhen(
    lab,
    application,
    async (_platform, _deploymentId, reached) => {
      await reached
    },
    boundary
  )

/** The same, when `come` resolves. */
export const killWhen = async (
  lab: DeployLab,
  application: LabApplication,
  come: (platform: TestClient, deploymentId: string, reached: Promise<unknown>) => Promise<unknown>,
  boundary: RolloutBoundary | null = null,
  environment: Readonly<Record<string, string>> = {}
): Promise<string> =>
  await killedAfter(
    lab,
    async (platform, lines) => {
      const answer = await platform.post(`${application.path}/deploy`)
      if (answer.status !== 202) throw new Error(`no deploy: ${JSON.stringify(answer.body)}`)
      const reached =
        boundary === null ? Promise.resolve() : lines.next(`that it is ${boundary}`, undefined, reachedMs)
      await come(platform, answer.body.id, reached)
      return answer.body.id
    },
    boundary,
    environment
  )

/** Runs the platform in a process of its own, on the same data, and kills it when `work` is over, whose answer it gives. */
export async function killedAfter<T>(
  lab: DeployLab,
  work: (platform: TestClient, lines: ProgramLines) => Promise<T>,
  boundary: RolloutBoundary | null = null,
  environment: Readonly<Record<string, string>> = {}
): Promise<T> {
  const { database, directory } = lab.k.state
  const argument = JSON.stringify({ url: database.url, directory, boundary, environment })
  const child: ChildProcess = spawn(
    process.execPath,
    [
      `--import=${new URL('../../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('crash-child.ts', import.meta.url)),
      argument
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const exited = once(child, 'exit')
  try {
    if (child.stdout === null) throw new Error('the platform says nothing')
    const lines = new ProgramLines(child.stdout, 'the platform')
    const { url } = JSON.parse(await lines.next('where it listens'))
    const admin = await lab.k.as.session()
    return await work(new TestClient(url, admin.credential, admin.userId), lines)
  } finally {
    child.kill('SIGKILL')
    await bounded(async () => await exited, { ms: 60_000, what: 'the platform, which was killed,' })
  }
}
