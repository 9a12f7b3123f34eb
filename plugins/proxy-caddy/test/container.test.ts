import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { freeTcpPorts } from '../../../lab/pebble.js'
import { route, table } from '../../domains/test/driver-contract.js'
import { startLab } from '../../runtime-docker/test/lab.js'
import { readAccessLine } from '../log/access-line.js'
import { lastLines } from '../log/file-tail.js'
import { caddyLab, labDirectory, startContainer, visit } from './caddy-lab.js'

const image = 'caddy:lab'
const hostname = 'www.example.com'
const served = table(route({ hostname, applicationId: 'a' }))
const environment = { BUSBAR_CADDY_PROGRAM: 'none', BUSBAR_CADDY_IMAGE: image }

test('where the program is not there, Caddy runs in a container of the platform, and is whole again when that is gone', async t => {
  if (!(await requireEngine(t))) return
  await promisify(execFile)(join(import.meta.dirname, '../../../lab/make-images.sh'), ['caddy'])
  const { runtime, docker, instanceId } = startLab(t)
  const containers = { runtime: { get: () => runtime }, images: { get: () => runtime } }
  const directory = await labDirectory(t)
  const ports = (await freeTcpPorts(2)) as [number, number]
  const first = await caddyLab(t, { environment, containers, directory, ports })
  t.equal(first.driver.fault(), null)
  const [a, b] = [await startContainer(t, 'a'), await startContainer(t, 'b')]
  await first.driver.retarget('a', new Map([[null, a]]))
  await first.driver.load(served)
  const status = async (): Promise<number | undefined> =>
    await visit(ports[0], { hostname }).then(
      answer => answer.status,
      () => undefined
    )
  t.equal(await status(), 200)

  const found = async () =>
    await docker.listContainers({ all: true, filters: { label: [`busbar-instance=${instanceId}`] } })
  const [own] = await found()
  const seen = await docker.getContainer(own?.Id ?? '').inspect()
  t.match(await runtime.inspect(seen.Id), { owner: {}, status: 'running' }, 'it is known for ours')
  t.match(seen.HostConfig, {
    NetworkMode: 'host',
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    CapAdd: ['NET_BIND_SERVICE'],
    Memory: 2 * 2 ** 30,
    PidsLimit: 1024,
    Privileged: false
  })
  t.same(
    seen.Mounts.map(({ Type, Source }) => `${Type} ${Source}`),
    [`bind ${directory}`],
    'it sees nothing else of the machine'
  )
  t.equal((await stat(join(directory, 'admin.sock'))).isSocket(), true, 'it is asked by a socket alone')
  t.equal(
    await new Promise(resolve =>
      connect(2019, '127.0.0.1')
        .on('connect', () => resolve('open'))
        .on('error', () => resolve('shut'))
    ),
    'shut'
  )

  await (await first.driver.switchTo('a', new Map([[null, b]])))?.drain(1000)
  t.match((await visit(ports[0], { hostname, path: '/switched' })).text, /"name":"b"/, 'a deploy switches')
  const line = await until(
    async () =>
      (await lastLines(join(directory, 'logs', 'access.log'), 5)).find(one => one.includes('/switched')),
    'its line in the log'
  )
  t.match(readAccessLine(line), { hostname, statusCode: 200, clientIp: '127.0.0.1' })

  await docker.getContainer(seen.Id).kill()
  await until(async () => (await status()) === 200, 'that a killed one serves again')
  await docker.getContainer((await found())[0]?.Id ?? '').remove({ force: true })
  await until(async () => (await status()) === 200, 'that a removed one does')
  t.equal((await found()).length, 1)
  await first.driver.restart()
  t.equal(await status(), 200)

  const second = await caddyLab(t, { environment, containers, directory, ports })
  t.match(second.driver.fault(), /another process of this installation/)
  await second.close()
  t.equal(await status(), 200)
  const refused = { handler: 'rewrite', path_regexp: [{ find: '(', replace: '' }] }
  await first.driver.load(
    table(
      route({ hostname, applicationId: 'a' }),
      route({ id: 'bad', hostname: 'bad.example.com', applicationId: 'a', handlers: [refused] })
    )
  )
  t.equal(await status(), 200, 'one route that it refuses harms no other')
  t.match((await first.driver.report('bad.example.com')).fault, /advanced_config/)
  await first.close()
  t.equal(await status(), undefined)
  t.same(await found(), [], 'it goes with the platform')
})

test('why no Caddy can run in a container is told, with what helps', async t => {
  if (!(await requireEngine(t))) return
  const { runtime } = startLab(t)
  const fault = async (containers: Parameters<typeof caddyLab>[1], name = image): Promise<string | null> => {
    const lab = await caddyLab(t, {
      ...containers,
      environment: { BUSBAR_CADDY_PROGRAM: 'none', BUSBAR_CADDY_IMAGE: name }
    })
    const told = lab.driver.fault()
    await lab.close()
    return told
  }
  const images = { get: () => runtime }
  t.match(await fault({}), /no plugin runs containers.*runtime-docker/)
  t.match(
    await fault({ containers: { runtime: { get: () => runtime }, images } }, 'none:lab'),
    /none:lab.*docker pull none:lab/
  )
  for (const [place, told] of [
    ['around', /in a container itself.*CADDY_ADMIN_URL/],
    ['elsewhere', /on another machine.*CADDY_ADMIN_URL/]
  ] as const) {
    const placed = Object.assign(Object.create(runtime), {
      info: async () => ({ ...(await runtime.info()), place })
    })
    t.match(await fault({ containers: { runtime: { get: () => placed }, images } }), told)
  }
})
