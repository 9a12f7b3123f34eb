import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { hostRanges, parseRoutes } from '../host-ranges.js'
import { networkName } from '../project-network.js'
import { allocateSubnet, parsePools, parseRange } from '../subnet.js'
import { engineTest, startLab } from './lab.js'

const range = (text: string) =>
  parseRange(text) ??
  (() => {
    throw new Error(text)
  })()

test('subnets are handed out from the lowest, around everything that is in use', t => {
  const pool = [range('10.201.0.0/24')]
  t.equal(allocateSubnet(pool, []), '10.201.0.0/26')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/26')]), '10.201.0.64/26')
  t.equal(
    allocateSubnet(pool, [range('10.201.0.128/26'), range('10.201.0.0/26')]),
    '10.201.0.64/26',
    'a gap is filled'
  )
  t.equal(
    allocateSubnet(pool, [range('10.201.0.0/25')]),
    '10.201.0.128/26',
    'a larger foreign network is passed over'
  )
  t.equal(allocateSubnet(pool, [range('10.201.0.70/32')]), '10.201.0.0/26', 'a small one only where it lies')
  t.equal(allocateSubnet(pool, [range('10.201.0.5/32'), range('10.201.0.64/30')]), '10.201.0.128/26')
  t.equal(allocateSubnet(pool, [range('10.0.0.0/8')]), undefined)
  t.equal(
    allocateSubnet([range('10.201.0.0/26'), range('10.202.0.0/26')], [range('10.201.0.0/26')]),
    '10.202.0.0/26',
    'the next pool follows'
  )
  t.equal(
    allocateSubnet([range('255.255.255.0/24')], [range('255.255.255.0/24')]),
    undefined,
    'the end of all addresses'
  )
  t.end()
})

test('networks of other sizes share the range without a gap that is too small for one', t => {
  const pool = [range('10.201.0.0/24')]
  t.equal(allocateSubnet(pool, [range('10.201.0.0/26')], 28), '10.201.0.64/28')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/28'), range('10.201.0.16/28')], 28), '10.201.0.32/28')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/28')]), '10.201.0.64/26')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/25'), range('10.201.0.128/26')], 28), '10.201.0.192/28')
  t.end()
})

test('a /16 holds exactly 1024 project networks', t => {
  const used = []
  for (let count = 0; ; count++) {
    const subnet = allocateSubnet([range('10.201.0.0/16')], used)
    if (subnet === undefined) {
      t.equal(count, 1024)
      break
    }
    used.push(range(subnet))
  }
  t.end()
})

test('BUSBAR_SUBNETS is a list of ranges of /26 or larger', t => {
  t.equal(parsePools('10.1.0.0/16, 10.2.0.0/16')?.ranges.length, 2)
  for (const wrong of [
    '',
    '10.1.0.0',
    '10.1.0.0/27',
    '10.1.0.256/16',
    '10.1.0.0/33',
    'fd00::/8',
    '10.1.0.0/16,,10.2.0.0/16'
  ]) {
    t.equal(parsePools(wrong), undefined, JSON.stringify(wrong))
  }
  t.end()
})

test('network names keep to 63 characters and stay apart', t => {
  const [id, other] = [randomUUID(), randomUUID()]
  t.equal(networkName({ id, slug: 'shop' }), 'busbar-shop')
  const long = networkName({ id, slug: 'x'.repeat(80) })
  t.equal(long.length, 63)
  t.ok(long.endsWith(`-${id.slice(0, 8)}`))
  t.not(long, networkName({ id: other, slug: 'x'.repeat(80) }))
  t.equal(networkName({ id, slug: 'a b/c' }), `busbar-a-b-c-${id.slice(0, 8)}`)
  t.end()
})

engineTest(
  'the subnet of a project that has gone is not that of the next one while others are free',
  async t => {
    const { runtime, docker, projectId } = startLab(t)
    const subnetOf = async (id: string): Promise<string | undefined> => {
      const name = await runtime.ensureNetwork({ id, slug: `n${id.slice(0, 8)}` })
      return (await docker.getNetwork(name).inspect()).IPAM?.Config?.[0]?.Subnet
    }
    const before = await subnetOf(projectId)
    await runtime.removeNetworks(projectId)
    const next = randomUUID()
    t.not(await subnetOf(next), before)
    await runtime.removeNetworks(next)

    const small = startLab(t, { environment: { BUSBAR_SUBNETS: '10.199.7.0/25' } })
    const given: Array<string | undefined> = []
    for (let n = 0; n < 3; n++) {
      const id = randomUUID()
      const name = await small.runtime.ensureNetwork({ id, slug: `s${id.slice(0, 8)}` })
      given.push((await docker.getNetwork(name).inspect()).IPAM?.Config?.[0]?.Subnet)
      await small.runtime.removeNetworks(id)
    }
    t.same(
      given,
      ['10.199.7.0/26', '10.199.7.64/26', '10.199.7.0/26'],
      'from the beginning when it is at the end'
    )
  }
)

engineTest(
  'a project has one network of its own, a /26 with its labels, however often it is asked for',
  async t => {
    const { runtime, docker, projectId, instanceId } = startLab(t)
    const project = { id: projectId, slug: `n${projectId.slice(0, 8)}` }
    const names = await Promise.all([
      runtime.ensureNetwork(project),
      runtime.ensureNetwork(project),
      runtime.ensureNetwork(project)
    ])
    t.same(new Set(names), new Set([`busbar-${project.slug}`]))
    const [network, ...more] = await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } })
    t.same(more, [])
    t.match(network?.Labels, { 'managed-by': 'busbar', 'busbar-instance': instanceId })
    t.match(network?.IPAM?.Config?.[0]?.Subnet, /^10\.201\.\d+\.\d+\/26$/)
    t.equal(
      await runtime.ensureNetwork({ ...project, slug: 'renamed-since' }),
      `busbar-${project.slug}`,
      'a changed slug does not make another'
    )
    await runtime.removeNetworks(projectId)
    await runtime.removeNetworks(projectId)
    t.same(await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } }), [])
  }
)

engineTest('many networks made at once by two platforms get subnets that do not overlap', async t => {
  const [one, two] = [startLab(t), startLab(t)]
  const projects = Array.from({ length: 6 }, () => randomUUID())
  const names = await Promise.all(
    projects.map(
      async (id, index) =>
        await (index % 2 === 0 ? one : two).runtime.ensureNetwork({ id, slug: `c${id.slice(0, 8)}` })
    )
  )
  const networks = await one.docker.listNetworks({ filters: { name: names } })
  const subnets = networks.map(network => network.IPAM?.Config?.[0]?.Subnet)
  t.equal(subnets.length, 6)
  t.equal(new Set(subnets).size, 6)
})

engineTest(
  'the 31st project has its network, although the default ranges of the engine end at 30',
  async t => {
    const { runtime, docker, instanceId } = startLab(t)
    const projects = Array.from({ length: 31 }, () => randomUUID())
    for (const id of projects) await runtime.ensureNetwork({ id, slug: `p${id.slice(0, 8)}` })
    const made = await docker.listNetworks({ filters: { label: [`busbar-instance=${instanceId}`] } })
    t.equal(new Set(made.map(({ IPAM }) => IPAM?.Config?.[0]?.Subnet)).size, 31)
  }
)

engineTest(
  'a foreign network in the range is passed over, and one with the wanted name is refused',
  async t => {
    const { runtime, docker, projectId } = startLab(t, { environment: { BUSBAR_SUBNETS: '10.219.0.0/24' } })
    const slug = `f${projectId.slice(0, 8)}`
    const foreign = await docker.createNetwork({
      Name: `foreign-${slug}`,
      IPAM: { Driver: 'default', Config: [{ Subnet: '10.219.0.0/25' }] }
    })
    const namesake = await docker.createNetwork({
      Name: `busbar-${slug}`,
      IPAM: { Driver: 'default', Config: [{ Subnet: '10.219.1.0/24' }] }
    })
    t.teardown(async () => {
      await foreign.remove()
      await namesake.remove()
    })

    await t.rejects(runtime.ensureNetwork({ id: projectId, slug }), {
      status: 409,
      code: 'E_NETWORK_NAME_TAKEN',
      message: new RegExp(`busbar-${slug}`)
    })
    const name = await runtime.ensureNetwork({ id: projectId, slug: `${slug}-b` })
    t.match(await docker.getNetwork(name).inspect(), { IPAM: { Config: [{ Subnet: '10.219.0.128/26' }] } })
  }
)

test('the routes of the machine are read from every table of the kernel, but for default ones', t => {
  const table = [
    'Id 52:',
    '  +-- 0.0.0.0/0 2 0 2',
    '     |-- 0.0.0.0',
    '        /0 universe UNICAST',
    '        /1 universe UNICAST',
    '     |-- 10.0.0.0',
    '        /8 universe UNICAST',
    'Main:',
    '  +-- 0.0.0.0/0 3 0 4',
    '     |-- 0.0.0.0',
    '        /0 universe UNICAST',
    '     +-- 10.201.0.0/17 2 0 2',
    '        |-- 10.201.0.64',
    '           /26 link UNICAST',
    '           /32 link BROADCAST',
    '        |-- 10.201.128.0',
    '           /24 universe BLACKHOLE',
    '        |-- 128.0.0.0',
    '           /1 universe UNICAST',
    ''
  ].join('\n')
  t.same(parseRoutes(table), [
    { ...range('10.0.0.0/8'), name: 'the route 10.0.0.0/8 (table 52)' },
    { ...range('10.201.0.64/26'), name: 'the route 10.201.0.64/26 (main)' },
    { ...range('10.201.128.0/24'), name: 'the route 10.201.128.0/24 (main)' }
  ])
  t.same(
    parseRoutes('not a table\nat all\n|-- 1.2.3\n/24 universe UNICAST\n|-- 1.2.3.4\n/99 universe UNICAST'),
    []
  )
  t.end()
})

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
  const id = await runtime.create(spec('detour', network))
  t.equal(await runtime.detour(id), null, 'it does not run')
  await runtime.start(id)
  t.equal(await runtime.detour(id), null)
  // A wider route of the main table comes after the bridge's own.
  await route(t, '10.215.0.0/16', 'dev', 'docker0')
  t.equal(await runtime.detour(id), null)
  await rule(t, '10.215.0.0/24', '7322')
  t.equal(await runtime.detour(id), null, 'a table without a route that fits')
  await route(t, '10.215.0.0/16', 'dev', 'docker0', 'table', '7322')
  t.match(
    await runtime.detour(id),
    /^this machine sends what is for 10\.215\.0\.2 from its address 172\.17\.0\.1 and not into the network busbar-d.*"ip route get 10\.215\.0\.2"/
  )
  await execute('ip', ['route', 'replace', 'blackhole', '10.215.0.0/16', 'table', '7322'])
  t.match(await runtime.detour(id), /^this machine has a route that refuses what is for 10\.215\.0\.2/)
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

// An engine that was killed and started anew elsewhere leaves such bridges; their range must not be used twice.
engineTest('the range of a bridge that nothing is plugged into counts as in use', async t => {
  const { runtime, docker, projectId } = startLab(t)
  await runtime.ensureNetwork({ id: projectId, slug: `r${projectId.slice(0, 8)}` })
  const [network] = await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } })
  const subnet = range(network?.IPAM?.Config?.[0]?.Subnet ?? '')
  t.ok((await hostRanges()).some(({ first, last }) => first === subnet.first && last === subnet.last))
})

engineTest('the end of the range is explained, and so is a range that is none', async t => {
  const small = startLab(t, { environment: { BUSBAR_SUBNETS: '10.218.0.0/26' } })
  await small.runtime.ensureNetwork({ id: randomUUID(), slug: `e${small.projectId.slice(0, 8)}` })
  await t.rejects(
    small.runtime.ensureNetwork({ id: small.projectId, slug: `g${small.projectId.slice(0, 8)}` }),
    {
      status: 409,
      code: 'E_NETWORK_SUBNETS_EXHAUSTED',
      message: /every \/26 subnet of 10\.218\.0\.0\/26 is in use: set BUSBAR_SUBNETS/
    }
  )
  t.throws(() => startLab(t, { environment: { BUSBAR_SUBNETS: 'ten' } }), {
    message: /^BUSBAR_SUBNETS is "ten"; it takes IPv4 ranges/
  })
})

engineTest('a network with containers is not removed, and the refusal names them', async t => {
  const { runtime, projectId, spec } = startLab(t)
  const network = await runtime.ensureNetwork({ id: projectId, slug: `u${projectId.slice(0, 8)}` })
  const id = await runtime.create(spec('stays', network))
  await runtime.start(id)
  await t.rejects(runtime.removeNetworks(projectId), {
    status: 409,
    code: 'E_NETWORK_IN_USE',
    message: /stays-/
  })
})

engineTest(
  'a platform that is itself a container joins the project network to dial, and leaves it before removal',
  async t => {
    const outside = startLab(t)
    // Stands for the platform's own container: named by API_CONTAINER_NAME, on the default network only.
    const own = await outside.docker.createContainer({
      name: `platform-${outside.projectId.slice(0, 8)}`,
      Image: 'busybox:lab',
      Cmd: ['sleep', '600'],
      Labels: { 'busbar-instance': outside.instanceId },
      HostConfig: { Init: true }
    })
    await own.start()
    const { runtime, projectId, spec, docker } = startLab(t, {
      environment: { API_CONTAINER_NAME: `platform-${outside.projectId.slice(0, 8)}` }
    })
    const network = await runtime.ensureNetwork({ id: projectId, slug: `j${projectId.slice(0, 8)}` })
    const id = await runtime.create(
      spec('app', network, {
        command: ['sh', '-c', 'echo inside > /tmp/index.html; exec httpd -f -p 8080 -h /tmp']
      })
    )
    await runtime.start(id)
    const [address] = await Promise.all([runtime.dial(id, 8080), runtime.dial(id, 8080)])

    const answer = await until(async () => {
      const exec = await own.exec({
        Cmd: ['wget', '-qO-', `http://${address.host}:${address.port}/`],
        AttachStdout: true
      })
      const stream = await exec.start({})
      let text = ''
      for await (const chunk of stream) text += String(chunk)
      return text.includes('inside') ? text : undefined
    }, 'the answer inside the network')
    t.match(answer, /inside/)

    await runtime.remove(id)
    await runtime.removeNetworks(projectId)
    t.same(await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } }), [])
  }
)
