import { text } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type LabApplication, openLab, steady } from './logs-lab.js'

/** What the engine has of a container, by what comes behind the header of each piece. */
async function inEngine({ docker }: SecondEngine, container: string): Promise<string[]> {
  const output = await docker.getContainer(container).logs({ stdout: true, follow: true })
  return [
    ...(await text(output as unknown as NodeJS.ReadableStream as never)).matchAll(/line \d+ x(?=\n)/g)
  ].map(([line]) => line)
}

const messages = async (application: LabApplication): Promise<string[]> =>
  (await application.whole()).map(({ message = '' }) => message)

test('kill -9 of the engine while a container writes: what the engine has of it is kept, each line once', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], liveRestore: true })
  t.teardown(() => engine.close())
  const lab = await openLab(t, { environment: engine.environment })
  if (lab === undefined) return
  const application = await lab.application()
  const container = await application.run(steady(6000))
  for (let round = 1; round <= 2; round++) {
    await until(async () => {
      lab.k.resetRateLimits()
      const [last] = await application.history('?limit=1')
      return Number(/line (\d+)/.exec(last?.message ?? '')?.[1] ?? 0) > round * 700
    }, 'further lines')
    await engine.kill()
    await engine.start()
  }
  await until(
    async () => (await engine.docker.getContainer(container).inspect()).State.Status === 'exited',
    'the end of the container',
    60_000
  )
  const expected = await inEngine(engine, container)
  t.ok(expected.length > 1400, `${expected.length} lines`)
  await until(async () => {
    lab.k.resetRateLimits()
    return (await application.history('?limit=1'))[0]?.message === expected.at(-1)
  }, 'the last line')
  t.same(await messages(application), expected)
})
