/** What is counted of deployments, as Prometheus gets it. */
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from './deploy-lab.js'

test('deployments and builds are counted by how they ended, and those under way by their status', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const scrape = async (): Promise<string> => (await (await lab.k.as.token('metrics')).get('/metrics')).body
  const figure = async (name: string): Promise<number | undefined> => {
    const line = (await scrape()).split('\n').find(one => one.startsWith(`${name} `))
    return line === undefined ? undefined : Number(line.slice(name.length + 1))
  }
  t.equal(await figure('busbar_deployments_active{status="building"}'), 0)
  t.equal(await figure('busbar_deployments_total{kind="deploy",status="success"}'), undefined)

  const web = await lab.application('web', sample('v1'))
  await web.deploy()
  await until(
    async () =>
      /^busbar_deployments_active\{status="(pending|building|deploying)"\} 1$/m.test(await scrape()),
    'it is under way'
  )
  await until(
    async () => (await figure('busbar_deployments_total{kind="deploy",status="success"}')) === 1,
    'its end',
    120_000
  )
  t.equal(await figure('busbar_builds_total{status="success"}'), 1)
  const [whole = 0, build = 0] = [
    await figure('busbar_deployment_seconds_total{kind="deploy",status="success"}'),
    await figure('busbar_build_seconds_total{status="success"}')
  ]
  t.ok(build > 0 && build < whole, `${build} s of ${whole}`)

  await web.push({ ...sample('v2'), Dockerfile: 'FROM node:20\nRUN exit 3\n' })
  t.match(await web.deployed(), { status: 'failed' })
  t.equal(await figure('busbar_deployments_total{kind="deploy",status="failed"}'), 1)
  t.equal(await figure('busbar_builds_total{status="failed"}'), 1)
  t.equal(await figure('busbar_deployments_active{status="building"}'), 0)
})
