import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openLab, sample } from './deploy-lab.js'

test('an engine that goes away while a version is proven by its http check', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'], liveRestore: true })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('unwell', 'unhealthy'), { health_check_path: '/health' })
  // Nothing of it must come from the end of its window.
  t.match(
    (await admin.put(`${web.path}/health-check`, { type: 'http', path: '/health', timeout_seconds: 3600 }))
      .status,
    200
  )

  /** The address of the new container, once it has been asked how it is. */
  const asked = async (): Promise<{ id: string; address: string }> => {
    const { id } = await web.deploy()
    await until(
      async () => (await admin.get(`${web.path}/deployments/${id}`)).body.step === 'prove-healthy',
      'it is being proven',
      60_000
    )
    const container = (await web.containers()).find(({ Labels }) => Labels['deployment-id'] === id)
    const [network] = Object.values(container?.NetworkSettings.Networks ?? {})
    const address = `http://${network?.IPAddress ?? ''}:8080`
    await until(
      async () =>
        await fetch(`${address}/health`).then(
          ({ status }) => status === 500,
          () => false
        ),
      'it says that it is not well'
    )
    return { id, address }
  }

  await t.test('and comes back: the proof goes on', async t => {
    const { id, address } = await asked()
    await engine.kill()
    await engine.start()
    await fetch(`${address}/mend`)
    t.match(await web.ended(id, 120_000), {
      status: 'success',
      health_status: 'passing',
      error_message: null
    })
  })

  await t.test(
    'and stays away: the deploy fails with the words of the engine, long before the window is over',
    async t => {
      const { id } = await asked()
      await engine.kill()
      const ended = await web.ended(id, 120_000)
      await engine.start()
      t.match(ended, {
        status: 'failed',
        step: 'prove-healthy',
        health_status: 'failing',
        error_message: /^no Docker Engine at .*start dockerd/
      })
      await until(
        async () => (await web.containers()).length === 1,
        'the new container goes when the engine is back',
        60_000
      )
      t.match(await web.read(), { status: 'running' })
    }
  )
})
