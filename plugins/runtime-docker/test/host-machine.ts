import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { ProgramLines } from '../../../lab/program-lines.js'
import {
  requireSecondEngine,
  type SecondEngine,
  type SecondEngineOptions,
  startSecondEngine
} from '../../../lab/second-engine.js'
import { type Lab, startLab } from './lab.js'

/* An engine that has a network of its own: the packet filter of the machine that runs the tests is nobody's to try things on. */

/** What answers on the engine's machine, on all its addresses: 8080 and 5432 as anything would, 80 as a proxy does. */
const hostPorts = [80, 5432, 8080]
export const metadata = '169.254.169.254'
export const neighbour = '192.168.250.2'
/** Of the neighbour as well, as if it were anywhere in the internet. */
export const farAway = '93.184.216.34'
/** The same, and where another cloud has its metadata. */
export const otherMetadata = '168.63.129.16'

/** Where the neighbour keeps every connection open. */
export const holdingPort = 9999
const neighbourPorts = [80, 53, 5432, holdingPort]

const listener = (ports: readonly number[]): string =>
  `for (const port of ${JSON.stringify(ports)}) require('node:net').createServer(socket => { socket.on('error', () => {}); if (port !== ${holdingPort}) socket.end('hello') }).listen(port, () => console.log('listens'))`

async function untilListening(lines: ProgramLines, count: number): Promise<void> {
  for (let heard = 0; heard < count; heard++)
    await lines.next('that it listens', line => line.includes('listens'))
}

function linesOf({ stdout }: ChildProcess, program: string): ProgramLines {
  if (stdout === null) throw new Error(`${program} says nothing`)
  return new ProgramLines(stdout, program)
}

export async function startMachine(
  t: Test,
  options: SecondEngineOptions = {}
): Promise<SecondEngine | undefined> {
  if (!(await requireSecondEngine(t))) return undefined
  const engine = await startSecondEngine({ ownNetwork: true, images: ['busybox:lab'], ...options })
  t.teardown(async () => {
    await engine.close()
  })
  // Of refusals in a row the machine says one a second, and who is not told knocks again after one.
  await engine.onMachine('sh', '-c', 'echo 0 > /proc/sys/net/ipv4/icmp_ratelimit')
  const server = engine.serveOnMachine('node', '-e', listener(hostPorts))
  t.teardown(() => server.kill('SIGKILL'))
  await untilListening(linesOf(server, 'the server on the machine'), hostPorts.length)
  return engine
}

export const labOn = (
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
export const knock = (address: string, port: number): string =>
  `timeout 3 nc ${address} ${port} </dev/null >/dev/null 2>&1; case $? in 0) echo ${port} open;; 143|124) echo ${port} silent;; *) echo ${port} closed;; esac`

export async function runIn({ docker }: Lab, container: string, script: string): Promise<string[]> {
  const exec = await docker
    .getContainer(container)
    .exec({ Cmd: ['sh', '-c', script], AttachStdout: true, Tty: true })
  let text = ''
  for await (const piece of await exec.start({ Tty: true })) text += String(piece)
  return text.trim().split(/\r?\n/)
}

export async function addressOn(
  { docker }: Lab,
  container: string,
  network: string
): Promise<{ readonly address: string; readonly gateway: string }> {
  const { NetworkSettings } = await docker.getContainer(container).inspect()
  const { IPAddress: address = '', Gateway: gateway = '' } = NetworkSettings.Networks[network] ?? {}
  return { address, gateway }
}

export async function startApplication(
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
  return { id, ...(await addressOn(lab, id, network)) }
}

/** A network beside the engine's machine, in which the metadata is too. */
export async function startNeighbour(t: Test, engine: SecondEngine): Promise<void> {
  const server = engine.serveOnMachine(
    'unshare',
    '--net',
    'sh',
    '-c',
    `ip link set lo up; echo ready; read line; ip address add ${neighbour}/24 dev peer0; ${[metadata, farAway, otherMetadata].map(address => `ip address add ${address}/32 dev peer0`).join('; ')}; ip link set peer0 up; ip route add default via 192.168.250.1; exec node -e "${listener(neighbourPorts)}"`
  )
  t.teardown(() => server.kill('SIGKILL'))
  if (server.pid === undefined) throw new Error('no neighbour')
  const lines = linesOf(server, 'the neighbour')
  await lines.next('that it is ready')
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
  for (const address of [metadata, farAway, otherMetadata])
    await engine.onMachine('ip', 'route', 'add', `${address}/32`, 'via', neighbour)
  server.stdin?.write('\n')
  await untilListening(lines, neighbourPorts.length)
}
