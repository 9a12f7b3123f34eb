import { randomUUID } from 'node:crypto'
import { createTestKernel, settingsFrom } from 'busbar/sdk/testing'
import { test } from 'tap'
import { createAddressStore } from '../address-store.js'
import { createAddresses } from '../migrations/001-create-addresses.js'
import { createReleasedPorts } from '../migrations/002-create-released-ports.js'
import { anyPort, portsToTry } from '../port-choice.js'
import { settings as declared, directSettingsOf } from '../settings.js'
import { createApplication } from './applications.js'

const settings = (ports: string) => ({
  ...directSettingsOf(settingsFrom(declared, { BUSBAR_DIRECT_PORTS: ports }), {
    host: '127.0.0.1',
    publicUrl: undefined
  }),
  isRangeOnly: true
})
const history = (held: number[], released: number[]) => ({
  held: new Set(held),
  released: new Map(released.map((port, at) => [port, new Date(at)]))
})

test('ports that nobody had come first, then the one that has been free longest', async t => {
  const ports = settings('100-105')
  t.same(portsToTry(ports, history([], [])), [100, 101, 102, 103, 104, 105])
  t.same(portsToTry(ports, history([101], [104, 100])), [102, 103, 105, 104, 100])
  t.same(portsToTry(ports, history([100, 101, 102, 103], [105, 99, 100, 106, 104])), [105, 104])
  t.same(portsToTry(ports, history([100, 101, 102, 103, 104, 105], [])), [])
  t.equal(portsToTry(settings('1-65535'), history([], [])).length, 64)
  const hundred = Array.from({ length: 100 }, (_, at) => 100 + at)
  t.equal(portsToTry(settings('100-199'), history([], hundred)).length, 64, 'nor more that were somebody’s')
  t.equal(portsToTry(settings('100-249'), history([], hundred)).length, 64)
  const anywhere = portsToTry({ ...ports, isRangeOnly: false }, history([], [104]))
  t.same(anywhere.slice(0, 6), [100, 101, 102, 103, 105, 104])
  t.ok(anywhere.slice(6).every(port => port === anyPort))
  t.ok(anywhere.length > 6)
})

test('a port that was somebody’s since it was looked for is not taken', async t => {
  const k = await createTestKernel({ environment: { DOCKER_HOST: 'unix:///nonexistent.sock' } })
  t.teardown(() => k.close())
  const store = createAddressStore(k.database('direct'))
  const [{ id: slow }, { id: fast }] = await Promise.all([createApplication(k), createApplication(k)])
  const never = { port: 300, releasedAt: null }
  t.equal(await store.add(fast, never, new Date(1000)), true)
  t.equal(await store.add(slow, never, new Date(1000)), false, 'it is held')
  await store.remove(fast, new Date(2000))
  t.equal(await store.add(slow, never, new Date(3000)), false, 'it was')
  t.same((await store.ports()).released, new Map([[300, new Date(2000)]]))
  t.equal(await store.add(slow, { port: 300, releasedAt: new Date(1000) }, new Date(3000)), false)
  t.equal(await store.add(slow, { port: 300, releasedAt: new Date(2000) }, new Date(3000)), true)
  await store.remove(slow, new Date(4000))
  t.same((await store.ports()).released, new Map([[300, new Date(4000)]]), 'one row for a port')
})

test('what was free between the ports in use counts as released after an upgrade', async t => {
  const k = await createTestKernel({ environment: { DOCKER_HOST: 'unix:///nonexistent.sock' } })
  t.teardown(() => k.close())
  const migrate = async (schema: string, ports: number[]): Promise<number[]> => {
    const run = async (sql: string) => await k.query(sql.replaceAll('$schema', schema))
    await run('create schema $schema')
    await run(createAddresses.sql)
    for (const port of ports)
      await run(
        `insert into $schema.address values ('${randomUUID()}', ${port}, null, null, null, null, true, now())`
      )
    await run(createReleasedPorts.sql)
    const store = createAddressStore(k.database(schema))
    return [...(await store.ports()).released.keys()]
  }
  t.same(await migrate('fresh', []), [])
  t.same(await migrate('used', [20_000, 20_003, 20_005]), [20_001, 20_002, 20_004])
})
