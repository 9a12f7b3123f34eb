import type { TestClient } from 'busbar/sdk/testing'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { maxPerOwner } from '../queue/owner-turns.js'
import { containersOf, openLab } from './deploy-lab.js'

/** Applications of a new project of whoever asks: they run and do nothing. */
async function projectOf(client: TestClient, name: string) {
  const slug = `turns-${name}-${Math.random().toString(36).slice(2, 8)}`
  const project = await client.post('/api/projects', { name, slug })
  const path = `/api/projects/${project.body.id}`
  return {
    path,
    async application(fields: object = {}) {
      const { body, status } = await client.post(`${path}/applications`, {
        name: 'idle',
        type: 'image',
        build_type: 'image',
        source_image: 'busybox:lab',
        start_command: 'sleep 600',
        ...fields
      })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return `${path}/applications/${body.id}`
    }
  }
}

test('who deploys what never gets healthy does not keep others from deploying', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const greedy = await lab.k.as.session('greedy')
  const other = await lab.k.as.session('other')
  const projects = [await projectOf(greedy, 'one'), await projectOf(greedy, 'two')]
  const theirs = await projectOf(other, 'other')
  const begun: Array<{ readonly app: string; readonly id: string }> = []
  for (let count = 0; count < maxPerOwner * 2 + 2; count++) {
    const app = (await projects[count % 2]?.application({ container_port: 81 })) ?? ''
    await greedy.put(`${app}/health-check`, { type: 'http', path: '/', timeout_seconds: 3600 })
    begun.push({ app, id: (await greedy.post(`${app}/deploy`)).body.id })
  }
  const records = async (): Promise<any[]> => {
    // Each look asks for all of them, which is more often than a person may.
    lab.k.resetRateLimits()
    return await Promise.all(
      begun.map(async ({ app, id }) => (await greedy.get(`${app}/deployments/${id}`)).body)
    )
  }
  const proving = async (): Promise<number> =>
    (await records()).filter(({ step }) => step === 'prove-healthy').length
  await until(async () => (await proving()) === maxPerOwner, 'as many as one owner may have', 60_000)

  const app = await theirs.application()
  const { id } = (await other.post(`${app}/deploy`)).body
  await until(
    async () => (await other.get(`${app}/deployments/${id}`)).body.status === 'success',
    'the deploy of somebody else',
    30_000
  )

  const waiting = (await records()).filter(({ status }) => status === 'pending')
  t.equal(waiting.length, begun.length - maxPerOwner)
  for (const { waiting_for: reason } of waiting)
    t.equal(reason, 'waiting for its turn: 6 deployments in projects of the same owner are under way')
  const ended = begun[0]
  await greedy.post(`${ended?.app}/deployments/${ended?.id}/cancel`)
  await until(
    async () => {
      const [first, ...rest] = await records()
      return (
        first.status === 'failed' &&
        rest.filter(({ step }) => step === 'prove-healthy').length === maxPerOwner
      )
    },
    'the next one in the place of one that was cancelled',
    30_000
  )
  const next = (await records())[maxPerOwner]
  t.match(next, { step: 'prove-healthy', waiting_for: null }, 'the one that was asked for first')
})

test('old versions that take their whole grace to end do not keep others from cleaning up', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const greedy = await lab.k.as.session('greedy')
  const other = await lab.k.as.session('other')
  const [project, theirs] = [await projectOf(greedy, 'ignores-sigterm'), await projectOf(other, 'other')]
  const roll = async (how: 'deploy' | 'reload', client: TestClient, app: string): Promise<void> => {
    const { id } = (await client.post(`${app}/${how}`)).body
    const isDone = async () => {
      // Nine that ask at once ask more often than a person may.
      lab.k.resetRateLimits()
      return (await client.get(`${app}/deployments/${id}`)).body.status === 'success'
    }
    await until(isDone, how, 60_000)
  }
  const ignoring = { start_command: `sh -c 'trap "" TERM; while :; do sleep 1; done'` }
  const apps = await Promise.all(Array.from({ length: 8 }, async () => await project.application(ignoring)))
  const app = await theirs.application()
  const warnings: Error[] = []
  const onWarning = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  await Promise.all([...apps.map(async one => await roll('deploy', greedy, one)), roll('deploy', other, app)])
  await Promise.all(apps.map(async one => await roll('reload', greedy, one)))
  await roll('reload', other, app)
  const id = app.split('/').at(-1) ?? ''
  await until(async () => (await containersOf(id)).length === 1, 'the end of the old version', 25_000)
  t.same(warnings, [], 'what waits for old versions does not add up on a signal that all of them share')
})
