import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { startEmbedded, stopEmbedded } from '../../../embedded-postgres/index.js'
import { requireEngine } from '../../../lab/engine.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { rolloutSteps } from '../api.js'
import { createBoundaryHook } from './boundary-hook.js'
import { stateOf } from './crash-lab.js'
import { engine, openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

const boundaryHook = createBoundaryHook()

/** A PostgreSQL of the test's own, which keeps what it has committed. */
async function startServer(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-database-crash-'))
  const options = { directory, log: pino({ level: 'silent' }), detached: true }
  const { url } = await startEmbedded(options)
  t.teardown(async () => {
    await stopEmbedded(directory)
    await rm(directory, { recursive: true, force: true })
  })
  return {
    url,
    async kill() {
      const [pid] = (await readFile(join(directory, 'pg18', 'postmaster.pid'), 'utf8')).split('\n')
      process.kill(Number(pid), 'SIGKILL')
    },
    start: async () => {
      await startEmbedded(options)
    }
  }
}

test('kill -9 of PostgreSQL during a deploy', async t => {
  if (!(await requireEngine(t))) return
  const server = await startServer(t)
  const directory = await mkdtemp(join(tmpdir(), 'busbar-database-crash-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  const lab = await openLab({
    state: { database: { url: server.url, drop: async () => {} }, directory },
    inline: [boundaryHook.inline]
  })
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('v0'))
  t.match(await web.deployed(), { status: 'success' })
  const { direct_url: address } = await web.read()
  let serving = 'v0'

  /** Asks the direct address all the time; what it did not answer well. */
  const watchTraffic = () => {
    let isOver = false
    let count = 0
    const failures: string[] = []
    const loop = (async () => {
      while (!isOver) {
        await fetch(address).then(
          async response => {
            if (!response.ok) failures.push(`${response.status} ${await response.text()}`)
          },
          (error: unknown) => failures.push(String(error))
        )
        count += 1
        await sleep(20)
      }
    })()
    return async () => {
      isOver = true
      await loop
      return { count, failures }
    }
  }

  /** The database dies at some moment of a deploy, which `kill` waits for, and is back two seconds later. */
  const survives = async (
    t: Test,
    version: string,
    files: Parameters<typeof web.push>[0],
    begin: () => { readonly killed: Promise<void> }
  ): Promise<void> => {
    await web.push(files)
    const before = await stateOf(web)
    const endTraffic = watchTraffic()
    const { killed } = begin()
    const { id } = await web.deploy()
    await killed
    await sleep(2000)
    t.ok((await fetch(address)).ok, 'requests are answered while the database is away')
    await server.start()
    const ended = await web.ended(id, 120_000)
    t.match(ended, { finished_at: String })
    if (ended.status === 'success') serving = version
    else t.match(ended.error_message, /PostgreSQL|took longer|listened|exit code/, ended.error_message)
    t.comment(`${version}: ${ended.status} ${ended.error_message ?? ''}`)
    await untilNothingIsLeft(lab, [web])
    const { count, failures } = await endTraffic()
    t.same(failures, [], `${count} requests`)
    await until(async () => (await web.read()).status === 'running', 'the status is right')
    t.match(await web.read(), { status: 'running', direct_url: address })
    t.equal(await (await fetch(address)).text(), serving)
    if (ended.status === 'failed')
      t.same(await stateOf(web), before, 'the old container has not been touched')
    else t.match(await stateOf(web), [{ Name: `/${web.slug}`, isRunning: true }])
  }

  // Before there is anything to take back, when the old version still serves, and when the new one does and no record says so.
  const steps = rotatingSample('kill -9 of PostgreSQL after a step', rolloutSteps, {
    always: ['load', 'start', 'switch'],
    others: 2
  })
  for (const step of rolloutSteps.filter(one => steps.has(one))) {
    await t.test(`after ${step}`, async t => {
      const version = `killed after ${step}`
      await survives(t, version, sample(version), () => ({
        killed: boundaryHook.at(`after ${step}`, server.kill)
      }))
    })
  }

  await t.test('in the middle of a build', async t => {
    const version = 'built without a database'
    await survives(
      t,
      version,
      sample(
        version,
        'ok',
        `FROM node:20\nWORKDIR /app\nCOPY . .\nRUN echo ${web.slug} && sleep 1\nCMD ["node", "server.js"]\n`
      ),
      () => ({
        killed: until(
          async () =>
            (await engine.listContainers()).some(({ Command }) => Command.includes(`echo ${web.slug}`)),
          'it builds'
        ).then(server.kill)
      })
    )
  })

  await web.push(sample('at last'))
  t.match(await web.deployed(), { status: 'success' }, 'the application can be deployed again after all that')
  t.equal(await (await fetch(address)).text(), 'at last')
})
