import { longestListedText, mostListedEntries } from 'busbar/api/containers'
import { type Test, test } from 'tap'
import { ContainerOwners } from '../container-owners.js'
import { Identity } from '../identity.js'
import { DiskMeasure } from '../inventory/disk-measure.js'
import { Inventory } from '../inventory/inventory.js'
import { longestRowBytes } from '../inventory/json-rows.js'
import { instanceLabel } from '../labels.js'
import { PlatformContainer } from '../platform-container.js'
import { cutEngine, whole } from './cut-engine.js'
import { clock, log, signatures } from './lab.js'

const instanceId = 'hostile-test'

/** An inventory of an engine that answers each path with these. */
async function inventoryOf(t: Test, answers: Readonly<Record<string, unknown>>) {
  const { engine, asked } = await cutEngine(t, {
    answer: ({ url = '' }) => whole(JSON.stringify(answers[url.split('?', 1)[0] ?? ''] ?? {}))
  })
  const identity = new Identity(instanceId, signatures)
  const inventory = new Inventory({
    engine,
    identity,
    instanceId,
    log,
    owners: new ContainerOwners(engine, identity, log),
    platform: new PlatformContainer(engine, []),
    measure: new DiskMeasure({ engine, clock, log })
  })
  return { inventory, asked }
}

const container = (number: number, more: object = {}) => ({
  Id: String(number).padStart(64, '0'),
  Names: [`/c${number}`],
  Image: 'busybox',
  ImageID: 'sha256:a',
  State: 'running',
  Created: number,
  Labels: {},
  ...more
})
const endless = 'x'.repeat(100_000)

test('names and tags that others have chosen are cut, and what no terminal shows is replaced', async t => {
  const { inventory } = await inventoryOf(t, {
    '/containers/json': [container(1, { Names: [`/${endless}`], Image: 'a\u202eb\u0007c' })],
    '/images/json': [
      {
        Id: 'sha256:a',
        RepoTags: ['<none>:<none>', ...Array.from({ length: 5000 }, (_, at) => `${'x'.repeat(1000)}:${at}`)],
        Size: -1,
        Created: 'never'
      }
    ],
    '/networks': [{ Id: 'n', Name: endless, Driver: endless, Labels: null, Created: '0001-01-01T00:00:00Z' }],
    '/volumes': { Volumes: [{ Name: endless, Mountpoint: endless, Options: { password: 'hidden' } }] }
  })
  const most = longestListedText + 10
  const [seen] = await inventory.containers()
  t.ok((seen?.name.length ?? 0) <= most)
  t.equal(seen?.image, 'a\ufffdb\ufffdc')
  const [image] = await inventory.images()
  t.equal(image?.tags.length, mostListedEntries)
  t.ok(image?.tags.every(tag => tag.length <= most))
  t.match(image, { sizeBytes: 0, createdAt: new Date(0) })
  const [network] = await inventory.networks()
  t.ok((network?.name.length ?? 0) <= most)
  t.same(network?.createdAt, new Date(0))
  const [volume] = await inventory.volumes()
  t.ok((volume?.name.length ?? 0) <= most && (volume?.mountpoint.length ?? 0) <= most)
  t.equal(volume?.createdAt, null)
  t.notMatch(JSON.stringify(volume), 'hidden')
})

test('ports, volumes and networks of one container are told up to a number', async t => {
  const ports = Array.from({ length: 60_000 }, (_, at) => ({
    IP: '0.0.0.0',
    PrivatePort: at + 1,
    PublicPort: at + 1,
    Type: 'tcp'
  }))
  const networks = Object.fromEntries(
    ports
      .slice(0, 3000)
      .map((_, at) => [`n${at}`, { NetworkID: `n${at}`, EndpointID: 'e', IPAddress: '10.0.0.1' }])
  )
  const { inventory } = await inventoryOf(t, {
    '/containers/json': [
      container(1, {
        Ports: ports,
        NetworkSettings: { Networks: networks },
        Mounts: ports.slice(0, 3000).map((_, at) => ({ Type: 'volume', Name: `v${at}` }))
      })
    ]
  })
  const [seen] = await inventory.containers()
  for (const list of [seen?.ports, seen?.networks, seen?.volumes]) t.equal(list?.length, mostListedEntries)
})

test('a row that nobody could read is left out, and the others are there', async t => {
  const { inventory } = await inventoryOf(t, {
    '/containers/json': [
      container(1),
      container(2, { Labels: { long: 'x'.repeat(longestRowBytes) } }),
      container(3, { Names: 'none', State: 7, Ports: 'many', Mounts: null, NetworkSettings: [], Labels: [1] })
    ]
  })
  t.match(await inventory.containers(), [
    { name: '', status: '', ports: [], volumes: [], networks: [] },
    { name: 'c1' }
  ])
})

test('a list of thousands takes one question to the engine, and one more for each that may be its own, once', async t => {
  const claims = { [instanceLabel]: instanceId }
  const { inventory, asked } = await inventoryOf(t, {
    '/containers/json': [
      ...Array.from({ length: 5000 }, (_, at) => container(at)),
      ...Array.from({ length: 20 }, (_, at) => container(5000 + at, { Labels: claims }))
    ],
    ...Object.fromEntries(
      Array.from({ length: 20 }, (_, at) => {
        const { Id } = container(5000 + at)
        const inspected = { Id, Name: `/c${at}`, Config: { Labels: claims }, HostConfig: {} }
        return [`/containers/${Id}/json`, inspected]
      })
    )
  })
  t.equal((await inventory.containers()).length, 5020)
  t.equal(asked.length, 21)
  t.ok((await inventory.containers()).every(({ isManaged }) => !isManaged))
  t.equal(asked.length, 22, 'whose a container is does not change')
})
