import { once } from 'node:events'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, startLab } from './lab.js'

const docker = new Docker()
const redis = { type: 'other', image: 'redis:7', container_port: 6379 }
/** No other test uses these. */
const port = 28_200 + (process.pid % 400) * 2

/** A platform that takes a container for its own, whose ports are published so. */
async function startInContainer(
  t: Test,
  published: Readonly<Record<number, string>>,
  environment: Readonly<Record<string, string>> = {}
) {
  const ports = Object.entries(published).map(([number, address]) => ({
    name: `${number}/tcp`,
    at: [{ HostIp: address, HostPort: number }]
  }))
  const own = await docker.createContainer({
    Image: 'busybox:lab',
    Cmd: ['sleep', '600'],
    ExposedPorts: Object.fromEntries(ports.map(({ name }) => [name, {}])),
    HostConfig: { Init: true, PortBindings: Object.fromEntries(ports.map(({ name, at }) => [name, at])) }
  })
  t.teardown(async () => await own.remove({ force: true, v: true }).catch(() => undefined))
  await own.start()
  const lab = await startLab(t, { environment: { API_CONTAINER_NAME: own.id, ...environment } })
  // It leaves the network of the project, which goes with the platform.
  t.teardown(async () => await own.remove({ force: true, v: true }))
  return lab
}

async function answerAt(host: string, number: number): Promise<string> {
  const socket = connect({ host, port: number })
  socket.on('error', () => {})
  socket.write('PING\r\n')
  try {
    const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(20_000) })) as [Buffer]
    return String(answer)
  } finally {
    socket.destroy()
  }
}

test('external access is refused, with what helps, in a container whose ports the machine does not have', async t => {
  if (!(await requireDatabaseImages(t))) return
  const { k, ann, ...lab } = await startInContainer(t, {})
  const { id, path } = await createDatabase({ k, ann, ...lab }, redis)
  t.match(await ann.post(`${path}/external-access`, { enabled: true }), {
    status: 503,
    body: {
      code: 'E_DATABASE_EXTERNAL_ACCESS',
      error: /the platform runs in a container/,
      remedy: /BUSBAR_DATABASE_PORTS.*docker-compose\.yml/
    }
  })
  t.match((await ann.get(path)).body, { external_access: null, host_port: null })

  // As a platform has left it that did not look.
  await k.query(
    `update databases.database set is_external = true, external_port = ${port} where id = '${id}'`
  )
  const isShown = async (): Promise<boolean> => (await ann.get(path)).body.external_access !== null
  await until(async () => !(await isShown()), 'a port that leads nowhere to be shown no more', 40_000)
  t.match(
    await ann.post(`${path}/external-access`, { enabled: false }),
    { status: 202 },
    'it can be given up'
  )
})

test('external access has the ports alone that are published on 127.0.0.1 of the machine', async t => {
  if (!(await requireDatabaseImages(t))) return
  // Stands for the address of the container: this machine has it, and it is no loopback.
  const bind = Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
  if (bind === undefined) throw new Error('an engine has a bridge, with an address')
  const lab = await startInContainer(
    t,
    { [port]: '127.0.0.1', [port + 1]: '0.0.0.0' },
    { BUSBAR_DATABASE_BIND: bind, BUSBAR_DATABASE_PORTS: `${port}-${port + 1}` }
  )
  const { ann } = lab
  const [one, other] = await Promise.all(
    ['one', 'other'].map(async name => await createDatabase(lab, { ...redis, name }))
  )
  if (one === undefined || other === undefined) throw new Error('there are two')
  const set = async (path: string, enabled: boolean) => await ann.post(`${path}/external-access`, { enabled })
  const portOf = async (path: string): Promise<number> =>
    await until(async () => (await ann.get(path)).body.external_access?.host_port, 'its port', 40_000)

  t.match(await set(one.path, true), { status: 202 })
  t.equal(await portOf(one.path), port, 'not the one that the network reaches')
  t.equal(await answerAt(bind, port), '+PONG\r\n')
  t.match(await set(one.path, true), { status: 202 }, 'what is open may be asked for again')
  t.match(await set(other.path, true), {
    status: 503,
    body: { code: 'E_DATABASE_EXTERNAL_ACCESS', remedy: /turn off that of another/ }
  })
  t.match(await set(one.path, false), { status: 202 })
  t.match(await set(other.path, true), { status: 202 })
  t.equal(await portOf(other.path), port)
})
