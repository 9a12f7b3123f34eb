import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { engineTest, startLab } from './lab.js'

engineTest(
  'a range that a route covers, in whatever table and however widely, is passed over; a refusal names the route',
  async t => {
    if (!(await requireSecondEngine(t))) return
    const { runtime, docker, projectId } = startLab(t, { environment: { BUSBAR_SUBNETS: '10.217.0.0/24' } })
    const project = { id: projectId, slug: `v${projectId.slice(0, 8)}` }
    await route(t, 'blackhole', '10.217.0.0/24', 'table', '7321')
    await t.rejects(runtime.ensureNetwork(project), {
      status: 409,
      code: 'E_NETWORK_SUBNETS_EXHAUSTED',
      message:
        /^no \/26 subnet of 10\.217\.0\.0\/24 is free: the route 10\.217\.0\.0\/24 \(table 7321\).*BUSBAR_SUBNETS/
    })
    await execute('ip', ['route', 'delete', 'blackhole', '10.217.0.0/24', 'table', '7321'])
    await route(t, '10.217.0.0/25', 'dev', 'lo', 'table', '7321')
    const name = await runtime.ensureNetwork(project)
    t.match(await docker.getNetwork(name).inspect(), { IPAM: { Config: [{ Subnet: '10.217.0.128/26' }] } })
  }
)

engineTest("the routes of the engine's machine count where the platform runs in a container", async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ ownNetwork: true, images: ['busybox:lab'] })
  t.teardown(async () => {
    await engine.close()
  })
  const own = await engine.docker.createContainer({
    name: 'platform',
    Image: 'busybox:lab',
    Cmd: ['sleep', '600'],
    HostConfig: { Init: true }
  })
  await own.start()
  await engine.onMachine('ip', 'route', 'add', '10.217.0.0/25', 'dev', 'docker0')
  const { runtime, docker, projectId } = startLab(t, {
    environment: { ...engine.environment, BUSBAR_SUBNETS: '10.217.0.0/24', API_CONTAINER_NAME: 'platform' },
    docker: engine.docker
  })
  const name = await runtime.ensureNetwork({ id: projectId, slug: 'around' })
  t.match(await docker.getNetwork(name).inspect(), { IPAM: { Config: [{ Subnet: '10.217.0.128/26' }] } })
})

engineTest('what the machine sends another way than to its container is known, and why', async t => {
  if (!(await requireSecondEngine(t))) return
  const { runtime, projectId, spec } = startLab(t, { environment: { BUSBAR_SUBNETS: '10.215.0.0/24' } })
  const network = await runtime.ensureNetwork({ id: projectId, slug: `d${projectId.slice(0, 8)}` })
  const id = await runtime.create(spec('conflict', network))
  t.equal(await runtime.routeConflict(id), null, 'it does not run')
  await runtime.start(id)
  t.equal(await runtime.routeConflict(id), null)
  // A wider route of the main table comes after the bridge's own.
  await route(t, '10.215.0.0/16', 'dev', 'docker0')
  t.equal(await runtime.routeConflict(id), null)
  await rule(t, '10.215.0.0/24', '7322')
  t.equal(await runtime.routeConflict(id), null, 'a table without a route that fits')
  await route(t, '10.215.0.0/16', 'dev', 'docker0', 'table', '7322')
  t.match(
    await runtime.routeConflict(id),
    /^this machine sends what is for 10\.215\.0\.2 from its address 172\.17\.0\.1 and not into the network busbar-d.*"ip route get 10\.215\.0\.2"/
  )
  await execute('ip', ['route', 'replace', 'blackhole', '10.215.0.0/16', 'table', '7322'])
  t.match(await runtime.routeConflict(id), /^this machine has a route that refuses what is for 10\.215\.0\.2/)
})

const execute = promisify(execFile)

async function route(t: Test, ...words: readonly string[]): Promise<void> {
  await execute('ip', ['route', 'add', ...words])
  t.teardown(async () => {
    await execute('ip', ['route', 'delete', ...words.filter(word => word !== 'blackhole')]).catch(
      () => undefined
    )
  })
}

async function rule(t: Test, to: string, table: string): Promise<void> {
  await execute('ip', ['rule', 'add', 'to', to, 'lookup', table])
  t.teardown(async () => {
    await execute('ip', ['rule', 'delete', 'to', to, 'lookup', table])
    // Whatever has become of its routes.
    await execute('ip', ['route', 'flush', 'table', table])
  })
}
