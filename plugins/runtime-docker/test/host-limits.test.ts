import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { settingsFrom, until } from 'busbar/sdk/testing'
import tap, { test } from 'tap'
import { pack } from 'tar-stream'
import type { SecondEngine } from '../../../lab/second-engine.js'
import { parseHostPorts } from '../host/host-ports.js'
import { bridgePrefix, buildBridgePrefix, newBridgeName } from '../host/installation-tag.js'
import { settings } from '../settings.js'
import {
  addressOn,
  knock,
  labOn,
  metadata,
  neighbour,
  runIn,
  startApplication,
  startMachine,
  startNeighbour
} from './host-machine.js'
import type { Lab } from './lab.js'

tap.setTimeout(300_000)

async function build(lab: Lab, dockerfile: string): Promise<string[]> {
  const tar = pack()
  tar.entry({ name: 'Dockerfile' }, dockerfile)
  tar.finalize()
  const lines: string[] = []
  await lab.runtime.build(
    Readable.from(tar),
    {
      tag: `lab-${randomUUID()}:1`,
      dockerfile: 'Dockerfile',
      buildArgs: {},
      owner: { projectId: lab.projectId },
      memoryBytes: 256 * 2 ** 20,
      cpus: 1,
      noCache: true
    },
    { onLine: line => lines.push(line), signal: new AbortController().signal }
  )
  return lines
}

/** In the network of a project, with what a step of a build may do to packets, and more. */
async function startForger(engine: SecondEngine, network: string): Promise<string> {
  const container = await engine.docker.createContainer({
    Image: 'busybox:lab',
    Cmd: ['sleep', '600'],
    HostConfig: { Init: true, NetworkMode: network, CapAdd: ['NET_ADMIN', 'NET_RAW'] }
  })
  await container.start()
  return container.id
}

test('a step of a build fills no table of its machine, whatever addresses it claims', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  const lab = labOn(t, engine)
  await build(lab, 'FROM busybox:lab\nRUN true\n')
  t.equal(lab.runtime.limits.bridges.state.kind, 'limited')
  const [network] = await engine.docker.listNetworks({ filters: { label: ['busbar-network=builds'] } })
  const bridge = network?.Options?.['com.docker.network.bridge.name'] ?? ''
  const forger = await startForger(engine, network?.Name ?? '')

  // Each is somebody else to the machine: another sender of frames, and another neighbour.
  const claims = [1, 2, 3, 4, 5].map(
    n => `
    ip link set eth0 down && ip link set eth0 address 02:00:00:00:00:0${n} && ip link set eth0 up
    ip address add 198.51.100.${n}/32 dev eth0
    arping -c 1 -w 1 -s 198.51.100.${n} -I eth0 "$gateway"`
  )
  await runIn(
    lab,
    forger,
    `gateway=$(ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'); ${claims.join(';')}; true`
  )
  t.notMatch(await engine.onMachine('ip', 'neigh', 'show', 'dev', bridge), /198\.51\.100\./)
  const learned = async () => await engine.onMachine('bridge', 'fdb', 'show', 'br', bridge)
  await until(async () => !/02:00:00:00:00:0\d/.test(await learned()), 'what was learned to be forgotten')
  t.equal(await engine.onMachine('ip', '-6', 'address', 'show', 'dev', bridge), '')

  const spec = lab.spec('plain', network?.Name ?? '')
  const plain = await lab.runtime.create({ ...spec, caps: 'standard', owner: { projectId: lab.projectId } })
  const { HostConfig } = await engine.docker.getContainer(plain).inspect()
  t.match(HostConfig.CapDrop, ['NET_RAW'], 'an application forges none at all')
})

test('with the limits of its machine', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  // A machine beside it, which has the metadata as well.
  await startNeighbour(t, engine)

  await t.test(
    'an application reaches the ports of its machine that are documented and no other, by whatever address',
    async t => {
      await engine.onMachine('ip', 'link', 'add', 'lan0', 'type', 'bridge')
      await engine.onMachine('ip', 'address', 'add', '192.168.77.1/24', 'dev', 'lan0')
      await engine.onMachine('ip', 'link', 'set', 'lan0', 'up')
      const published = await engine.docker.createContainer({
        Image: 'busybox:lab',
        Cmd: ['sh', '-c', 'while true; do echo hello | nc -l -p 6000; done'],
        ExposedPorts: { '6000/tcp': {} },
        HostConfig: { Init: true, PortBindings: { '6000/tcp': [{ HostIp: '0.0.0.0', HostPort: '6000' }] } }
      })
      await published.start()

      const open = labOn(t, engine, { HOST_PORTS_FOR_CONTAINERS: 'all' })
      const free = await startApplication(open)
      t.same(
        await runIn(open, free.id, [80, 5432, 8080, 6000].map(port => knock(free.gateway, port)).join(';')),
        ['80 open', '5432 open', '8080 open', '6000 open'],
        'with HOST_PORTS_FOR_CONTAINERS=all everything answers'
      )

      const lab = labOn(t, engine)
      const { id, gateway } = await startApplication(lab)
      t.equal(lab.runtime.hostLimits.kind, 'limited')
      for (const address of [gateway, '172.17.0.1', '192.168.77.1']) {
        const seen = await runIn(lab, id, [80, 5432, 8080, 6000].map(port => knock(address, port)).join(';'))
        t.same(seen, ['80 open', '5432 closed', '8080 closed', '6000 closed'], address)
      }
      t.same(
        await runIn(open, free.id, knock(free.gateway, 5432)),
        ['5432 open'],
        'another installation on the engine keeps its own choice'
      )

      const wider = labOn(t, engine, { HOST_PORTS_FOR_CONTAINERS: '5000-5999' })
      const chosen = await startApplication(wider)
      t.same(await runIn(wider, chosen.id, [80, 5432].map(port => knock(chosen.gateway, port)).join(';')), [
        '80 closed',
        '5432 open'
      ])
    }
  )

  await t.test(
    'the machine still reaches the containers, and they what is beyond it, but for the addresses of its metadata',
    async t => {
      const lab = labOn(t, engine)
      const { id, address } = await startApplication(lab)
      t.same(await runIn(lab, id, knock(neighbour, 5432)), ['5432 open'])
      t.same(
        await runIn(lab, id, [knock(metadata, 80), knock(metadata, 53)].join(';')),
        ['80 closed', '53 open'],
        'some clouds answer DNS there'
      )

      const listening = await lab.docker
        .getContainer(id)
        .exec({ Cmd: ['nc', '-l', '-p', '9000', '-e', 'echo', 'hello'] })
      await listening.start({ Detach: true })
      const asked = await engine.onMachine(
        'node',
        '-e',
        `
      const ask = left => require('node:net').connect(9000, '${address}').on('data', text => { console.log(String(text)); process.exit() })
        .on('error', error => { if (left === 0) throw error; setTimeout(ask, 50, left - 1) })
      ask(100)`
      )
      t.match(asked, /hello/)
    }
  )

  await t.test('a step of a build reaches neither the machine, nor a project, nor another build', async t => {
    const lab = labOn(t, engine)
    const project = await startApplication(lab)
    const serve = 'while true; do echo hello | nc -l -p 7000; done'
    const serving = await lab.docker.getContainer(project.id).exec({ Cmd: ['sh', '-c', serve] })
    await serving.start({ Detach: true })

    const network = await lab.runtime.ensureBuildNetwork(lab.projectId)
    const other = await lab.runtime.create(lab.spec('other-step', network, { command: ['sh', '-c', serve] }))
    await lab.runtime.start(other)
    const step = await addressOn(lab, other, network)
    t.same(
      await engine.onMachine(
        'node',
        '-e',
        `require('node:net').connect(7000, '${step.address}').on('connect', () => { console.log('up'); process.exit() })`
      ),
      'up\n'
    )

    const lines = await build(
      lab,
      `FROM busybox:lab\nRUN ${[
        knock(step.gateway, 80),
        knock(step.gateway, 5432),
        knock('172.17.0.1', 8080),
        knock(project.address, 7000),
        knock(step.address, 7000)
      ].join(';')}\n`
    )
    t.same(
      lines.filter(line => /^\d+ (?:open|closed|silent)$/.test(line)),
      ['80 open', '5432 closed', '8080 closed', '7000 closed', '7000 closed']
    )
    t.same(await runIn(lab, project.id, knock(step.address, 7000)), ['7000 silent'])
  })

  await t.test(
    'what leaves a network with the address of another one as its source goes nowhere',
    async t => {
      const lab = labOn(t, engine)
      const victim = await startApplication(lab, 'victim')
      const forger = await startForger(
        engine,
        await lab.runtime.ensureNetwork({ id: lab.projectId, slug: `f${lab.projectId.slice(0, 8)}` })
      )
      const sources = [victim.address, '198.51.100.7']
      for (const source of sources)
        await engine.onMachine('iptables', '-t', 'mangle', '-A', 'FORWARD', '-s', source, '-d', neighbour)
      const leave = async (from: string, source: string): Promise<void> => {
        await runIn(lab, from, `ping -q -c 2 -W 1 -I ${source} ${neighbour} >/dev/null 2>&1`)
      }
      const left = async (): Promise<number[]> =>
        (await engine.onMachine('iptables', '-t', 'mangle', '-L', 'FORWARD', '-v', '-x', '-n'))
          .split('\n')
          .filter(line => line.includes(neighbour))
          .map(line => Number(line.trim().split(/\s+/)[0]))

      for (const source of sources) {
        await runIn(lab, forger, `ip address add ${source}/32 dev eth0`)
        await leave(forger, source)
      }
      t.same(await left(), [0, 0])
      t.match((await runIn(lab, forger, `ping -q -c 1 -W 5 ${neighbour}`)).join(), /1 packets received/)
      await runIn(lab, victim.id, knock(neighbour, 5432))
      t.ok(((await left())[0] ?? 0) > 0, 'its own container sends with that address')
      t.equal(lab.runtime.hostLimits.kind, 'limited')
    }
  )

  await t.test('a network from before, whose bridge the engine has named, is limited as well', async t => {
    const lab = labOn(t, engine)
    const old = await engine.docker.createNetwork({
      Name: 'busbar-old',
      Driver: 'bridge',
      Labels: { 'busbar-instance': lab.instanceId, 'project-id': lab.projectId }
    })
    const id = await lab.runtime.create(lab.spec('old', 'busbar-old'))
    await lab.runtime.start(id)
    const { gateway } = await addressOn(lab, id, 'busbar-old')
    t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 open'])
    t.equal(await lab.runtime.ensureNetwork({ id: lab.projectId, slug: 'renamed' }), 'busbar-old')
    t.same(await runIn(lab, id, [knock(gateway, 5432), knock(gateway, 80)].join(';')), [
      '5432 closed',
      '80 open'
    ])
    await lab.runtime.remove(id)
    await old.remove()
  })
})

test('HOST_PORTS_FOR_CONTAINERS is a list of ports and ranges, or a word', async t => {
  t.same(parseHostPorts('80, 443,20000-20019'), [
    { first: 80, last: 80 },
    { first: 443, last: 443 },
    { first: 20000, last: 20019 }
  ])
  t.equal(parseHostPorts('all'), 'all')
  t.same(parseHostPorts('none'), [])
  for (const wrong of ['', '0', '65536', '90-80', '80,', 'http', '80;443', '1-2-3', '-A INPUT'])
    t.equal(parseHostPorts(wrong), undefined, JSON.stringify(wrong))
  t.throws(() => settingsFrom(settings, { HOST_PORTS_FOR_CONTAINERS: 'eighty' }), {
    message: /^HOST_PORTS_FOR_CONTAINERS is "eighty"; it takes ports and ranges of ports/
  })
})

test('MAX_CONTAINER_CONNECTIONS is a number', async t => {
  t.throws(() => settingsFrom(settings, { MAX_CONTAINER_CONNECTIONS: 'many' }), {
    message: /^MAX_CONTAINER_CONNECTIONS is "many"; it takes a whole number from 16/
  })
})

test("the names of bridges and chains fit where they go, and are one installation's own", t => {
  // Five hexadecimal digits: of many, two are the same now and then.
  const ids = Array.from({ length: 10 }, () => randomUUID())
  t.equal(new Set(ids.map(bridgePrefix)).size, ids.length)
  for (const id of ids) t.match(newBridgeName(id), new RegExp(`^${bridgePrefix(id)}[0-9a-f]{8}$`))
  for (const id of ids)
    t.match(newBridgeName(id, { forBuilds: true }), new RegExp(`^${buildBridgePrefix(id)}[0-9a-f]{7}$`))
  t.ok(ids.every(id => newBridgeName(id).length <= 15 && newBridgeName(id, { forBuilds: true }).length <= 15))
  t.end()
})
