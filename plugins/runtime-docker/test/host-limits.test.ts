import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import tap, { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import {
  requireSecondEngine,
  type SecondEngine,
  type SecondEngineOptions,
  startSecondEngine
} from '../../../test/lab/second-engine.js'
import { parseHostPorts } from '../host/host-ports.js'
import { bridgePrefix, installationTag, newBridgeName } from '../host/installation-tag.js'
import { type Lab, startLab } from './lab.js'

/* On an engine that has a network of its own: the packet filter of the machine that runs the tests is nobody's to try things on. */

tap.setTimeout(300_000)

/** What answers on the engine's machine, on all its addresses: 8080 and 5432 as anything would, 80 as a proxy does. */
const hostPorts = [80, 5432, 8080]
const metadata = '169.254.169.254'
const neighbour = '192.168.250.2'

/** Where the neighbour keeps every connection open. */
const holdingPort = 9999

const listener = (ports: readonly number[]): string =>
  `for (const port of ${JSON.stringify(ports)}) require('node:net').createServer(socket => { socket.on('error', () => {}); if (port !== ${holdingPort}) socket.end('hello') }).listen(port, () => console.log('listens'))`

async function startMachine(t: Test, options: SecondEngineOptions = {}): Promise<SecondEngine | undefined> {
  if (!(await requireSecondEngine(t))) return undefined
  const engine = await startSecondEngine({ ownNetwork: true, images: ['busybox:lab'], ...options })
  t.teardown(async () => {
    await engine.close()
  })
  const server = engine.serveOnMachine('node', '-e', listener(hostPorts))
  t.teardown(() => server.kill('SIGKILL'))
  for (let heard = ''; heard.split('listens').length <= hostPorts.length; )
    heard += String((await once(server.stdout ?? server, 'data'))[0])
  return engine
}

const labOn = (
  t: Test,
  engine: SecondEngine,
  environment: Readonly<Record<string, string>> = {},
  instanceId?: string
): Lab =>
  startLab(t, {
    environment: { ...engine.environment, ...environment },
    docker: engine.docker,
    ...(instanceId !== undefined && { instanceId })
  })

/** `open`, or `closed` when it is refused at once; `silent` when nothing comes back. */
const knock = (address: string, port: number): string =>
  `timeout 3 nc ${address} ${port} </dev/null >/dev/null 2>&1; case $? in 0) echo ${port} open;; 143|124) echo ${port} silent;; *) echo ${port} closed;; esac`

async function runIn({ docker }: Lab, container: string, script: string): Promise<string[]> {
  const exec = await docker
    .getContainer(container)
    .exec({ Cmd: ['sh', '-c', script], AttachStdout: true, Tty: true })
  let text = ''
  for await (const piece of await exec.start({ Tty: true })) text += String(piece)
  return text.trim().split(/\r?\n/)
}

async function startApplication(
  lab: Lab,
  name = 'app'
): Promise<{ readonly id: string; readonly gateway: string; readonly address: string }> {
  const projectId = randomUUID()
  const network = await lab.runtime.ensureNetwork({ id: projectId, slug: `${name}-${projectId.slice(0, 8)}` })
  const id = await lab.runtime.create({
    ...lab.spec(`${name}-${projectId.slice(0, 4)}`, network),
    owner: { projectId }
  })
  await lab.runtime.start(id)
  const {
    NetworkSettings: { Networks }
  } = await lab.docker.getContainer(id).inspect()
  return { id, gateway: Networks[network]?.Gateway ?? '', address: Networks[network]?.IPAddress ?? '' }
}

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

const rulesOf = async (engine: SecondEngine): Promise<string[]> =>
  [
    ...(await engine.onMachine('iptables-save')).split('\n'),
    ...(await engine.onMachine('ip6tables-save')).split('\n')
  ].filter(line => line.includes('BUSBAR-'))

test('an application reaches the ports of its machine that are documented and no other, by whatever address', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
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
})

test('the machine still reaches the containers, and they what is beyond it, but for the addresses of its metadata', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  // A machine beside it, which has the metadata as well.
  await startNeighbour(t, engine)
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
})

test('a step of a build reaches neither the machine, nor a project, nor another build', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const project = await startApplication(lab)
  const serve = 'while true; do echo hello | nc -l -p 7000; done'
  const serving = await lab.docker.getContainer(project.id).exec({ Cmd: ['sh', '-c', serve] })
  await serving.start({ Detach: true })

  const network = await lab.runtime.ensureBuildNetwork(lab.projectId)
  const other = await lab.runtime.create(lab.spec('other-step', network, { command: ['sh', '-c', serve] }))
  await lab.runtime.start(other)
  const {
    NetworkSettings: { Networks }
  } = await lab.docker.getContainer(other).inspect()
  const of = Networks[network]
  t.same(
    await engine.onMachine(
      'node',
      '-e',
      `require('node:net').connect(7000, '${of?.IPAddress ?? ''}').on('connect', () => { console.log('up'); process.exit() })`
    ),
    'up\n'
  )

  const lines = await build(
    lab,
    `FROM busybox:lab\nRUN ${[
      knock(of?.Gateway ?? '', 80),
      knock(of?.Gateway ?? '', 5432),
      knock('172.17.0.1', 8080),
      knock(project.address, 7000),
      knock(of?.IPAddress ?? '', 7000)
    ].join(';')}\n`
  )
  t.same(
    lines.filter(line => /^\d+ (?:open|closed|silent)$/.test(line)),
    ['80 open', '5432 closed', '8080 closed', '7000 silent', '7000 silent']
  )
  t.same(await runIn(lab, project.id, knock(of?.IPAddress ?? '', 7000)), ['7000 silent'])
})

/** Where the programs of the packet filter have that module. */
const modules = (name: string): string[] =>
  readdirSync('/usr/lib')
    .map(folder => join('/usr/lib', folder, 'xtables', name))
    .filter(path => existsSync(path))

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

test('what leaves a network with the address of another one as its source goes nowhere', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  await startNeighbour(t, engine)
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
})

test("one project's containers do not fill the machine's table of connections", async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  await startNeighbour(t, engine)
  const most = 24
  const lab = labOn(t, engine, { MAX_CONTAINER_CONNECTIONS: String(most) })
  const greedy = await startApplication(lab, 'greedy')
  const other = await startApplication(lab, 'other')
  const inTable = async (): Promise<number> =>
    Number(await engine.onMachine('cat', '/proc/sys/net/netfilter/nf_conntrack_count'))
  const before = await inTable()

  const holding = await lab.docker.getContainer(greedy.id).exec({
    Cmd: ['sh', '-c', `for i in $(seq 120); do sleep 60 | nc ${neighbour} ${holdingPort} & done; wait`]
  })
  await holding.start({ Detach: true })
  await until(async () => (await inTable()) - before >= most, 'the most that are open are open')
  await sleep(1_000)
  t.ok((await inTable()) - before < most + 12, `${await inTable()} from ${before}`)
  t.same(await runIn(lab, greedy.id, knock(neighbour, 5432)), ['5432 closed'], 'it is told at once')
  t.same(await runIn(lab, greedy.id, knock(greedy.gateway, 80)), ['80 closed'], 'the machine counts as well')
  t.same(await runIn(lab, other.id, knock(neighbour, 5432)), ['5432 open'])

  await lab.runtime.limitHost()
  t.same(await runIn(lab, greedy.id, knock(neighbour, 5432)), ['5432 closed'], 'it is not forgotten')

  // Those that have ended stay in the table for a while, and so does what is no connection.
  const hasty = await startApplication(lab, 'hasty')
  const between = await inTable()
  await runIn(
    lab,
    hasty.id,
    `for i in $(seq 60); do nc ${neighbour} 5432 </dev/null >/dev/null 2>&1; nc -u -w 1 ${neighbour} 9 <&- >/dev/null 2>&1 & done`
  )
  t.ok((await inTable()) - between < 2 * most, `${await inTable()} from ${between}`)

  await t.rejects(
    labOn(t, engine, { MAX_CONTAINER_CONNECTIONS: 'many' }).runtime.ensureNetwork({
      id: randomUUID(),
      slug: 'm'
    }),
    { code: 'E_CONTAINER_CONNECTIONS_INVALID', message: /MAX_CONTAINER_CONNECTIONS holds many/ }
  )
})

test('a kernel that does not know where packets should come from is limited as far as it can be, and health says so', async t => {
  const engine = await startMachine(t, { lacks: modules('libxt_rpfilter.so') })
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const { id, gateway } = await startApplication(lab)
  t.match(lab.runtime.hostLimits, { kind: 'unguarded', reason: /rpfilter/ })
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 closed'])
})

test('a network from before, whose bridge the engine has named, is limited as well', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const old = await engine.docker.createNetwork({
    Name: 'busbar-old',
    Driver: 'bridge',
    Labels: { 'busbar-instance': lab.instanceId, 'project-id': lab.projectId }
  })
  const id = await lab.runtime.create(lab.spec('old', 'busbar-old'))
  await lab.runtime.start(id)
  const {
    NetworkSettings: { Networks }
  } = await engine.docker.getContainer(id).inspect()
  const gateway = Networks['busbar-old']?.Gateway ?? ''
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 open'])
  t.equal(await lab.runtime.ensureNetwork({ id: lab.projectId, slug: 'renamed' }), 'busbar-old')
  t.same(await runIn(lab, id, [knock(gateway, 5432), knock(gateway, 80)].join(';')), [
    '5432 closed',
    '80 open'
  ])
  await lab.runtime.remove(id)
  await old.remove()
})

test('the rules are set once however often they are asked for, again when they were lost, and go with the last network', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const neighbouring = labOn(t, engine)
  const { id, gateway } = await startApplication(lab)
  await startApplication(neighbouring)
  const first = await rulesOf(engine)
  const tag = installationTag(lab.instanceId)
  await Promise.all([
    lab.runtime.limitHost(),
    lab.runtime.limitHost(),
    labOn(t, engine, {}, lab.instanceId).runtime.limitHost()
  ])
  t.same((await rulesOf(engine)).sort(), first.sort(), 'nothing is there twice')

  await engine.onMachine('iptables', '-F', 'INPUT')
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 open'])
  await lab.runtime.limitHost()
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 closed'])
  t.equal(
    (await rulesOf(engine)).filter(line => line === `-A INPUT -j BUSBAR-${tag}-INPUT`).length,
    2,
    'one for each kind of address'
  )

  await engine.kill()
  await engine.start()
  await lab.runtime.limitHost()
  const again = await startApplication(lab, 'again')
  t.same(
    await runIn(lab, again.id, knock(again.gateway, 5432)),
    ['5432 closed'],
    'and after a crash of the engine'
  )

  for (const { id: container, owner } of await lab.runtime.list({})) {
    await lab.runtime.remove(container)
    await lab.runtime.removeNetworks(owner.projectId ?? '')
  }
  t.same(
    (await rulesOf(engine)).filter(line => line.includes(tag)),
    []
  )
  t.ok(
    (await rulesOf(engine)).some(line => line.includes(installationTag(neighbouring.instanceId))),
    'those of another installation stay'
  )
  t.same(
    (await engine.docker.listImages({ all: true })).flatMap(({ RepoTags }) => RepoTags ?? []),
    ['busybox:lab']
  )
  t.equal((await engine.docker.listContainers({ all: true })).length, 1)
})

test('where the machine has no packet filter a deploy goes on, and health says what is not limited', async t => {
  const engine = await startMachine(t, { lacks: ['/usr/sbin/iptables'] })
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const { id, gateway } = await startApplication(lab)
  t.match(lab.runtime.hostLimits, { kind: 'failed', reason: /has no iptables-save/ })
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 open'])
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
  const engine = await startMachine(t)
  if (engine === undefined) return
  const lab = labOn(t, engine, { HOST_PORTS_FOR_CONTAINERS: 'eighty' })
  await t.rejects(lab.runtime.ensureNetwork({ id: lab.projectId, slug: 'x' }), {
    code: 'E_HOST_PORTS_INVALID',
    message: /HOST_PORTS_FOR_CONTAINERS holds eighty/
  })
})

test("the names of bridges and chains fit where they go, and are one installation's own", t => {
  const ids = Array.from({ length: 200 }, () => randomUUID())
  t.equal(new Set(ids.map(bridgePrefix)).size, ids.length)
  for (const id of ids) t.match(newBridgeName(id), new RegExp(`^${bridgePrefix(id)}[0-9a-f]{8}$`))
  t.ok(ids.every(id => newBridgeName(id).length <= 15))
  t.end()
})

/** A network beside the engine's machine, in which the metadata is too. */
async function startNeighbour(t: Test, engine: SecondEngine): Promise<void> {
  const server = engine.serveOnMachine(
    'unshare',
    '--net',
    'sh',
    '-c',
    `ip link set lo up; echo ready; read line; ip address add ${neighbour}/24 dev peer0; ip address add ${metadata}/32 dev peer0; ip link set peer0 up; ip route add default via 192.168.250.1; exec node -e "${listener([80, 53, 5432, holdingPort])}"`
  )
  t.teardown(() => server.kill('SIGKILL'))
  if (server.stdout === null || server.pid === undefined) throw new Error('no neighbour')
  await once(server.stdout, 'data')
  await engine.onMachine(
    'ip',
    'link',
    'add',
    'near0',
    'type',
    'veth',
    'peer',
    'name',
    'peer0',
    'netns',
    String(server.pid)
  )
  await engine.onMachine('ip', 'address', 'add', '192.168.250.1/24', 'dev', 'near0')
  await engine.onMachine('ip', 'link', 'set', 'near0', 'up')
  await engine.onMachine('ip', 'route', 'add', `${metadata}/32`, 'via', neighbour)
  server.stdin?.write('\n')
  for (let heard = ''; heard.split('listens').length <= 4; )
    heard += String((await once(server.stdout, 'data'))[0])
}
