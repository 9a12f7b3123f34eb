import { randomBytes } from 'node:crypto'
import type { EngineInventory, ListedContainer } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import type { Test } from 'tap'
import { engineTest, type Lab, sharedLab, startLab } from './lab.js'

const newProject = sharedLab()
const unique = (word: string): string => `${word}-${randomBytes(6).toString('hex')}`

const networkOf = async ({ runtime, projectId }: Lab): Promise<string> =>
  await runtime.ensureNetwork({ id: projectId, slug: `t${projectId.slice(0, 8)}` })

async function foreignContainer(t: Test, docker: Docker, options: Docker.ContainerCreateOptions = {}) {
  const made = await docker.createContainer({ Image: 'busybox:lab', ...options })
  t.teardown(async () => await made.remove({ force: true, v: true }).catch(() => {}))
  return made
}

const found = async (inventory: EngineInventory, id: string): Promise<ListedContainer | undefined> =>
  (await inventory.containers()).find(one => one.id === id)

engineTest('a list of containers has those of others too, and says of each whose it is', async t => {
  const lab = newProject()
  const { runtime, docker, projectId } = lab
  const network = await networkOf(lab)
  const owner = { projectId, applicationId: projectId, deploymentId: projectId }
  const id = await runtime.create(lab.spec('mine', network, { owner }))
  t.teardown(async () => await runtime.remove(id))
  await runtime.start(id)
  const name = unique('foreign')
  const foreign = await foreignContainer(t, docker, {
    name,
    Env: ['PASSWORD=hidden'],
    Labels: { secret: 'hidden' },
    Cmd: ['sleep', 'hidden']
  })
  t.match(await found(runtime.inventory, id), {
    owner,
    isManaged: true,
    status: 'running',
    image: 'busybox:lab'
  })
  const seen = await found(runtime.inventory, foreign.id)
  t.match(seen, { name, owner: null, isManaged: false, status: 'created', networks: [], volumes: [] })
  t.notMatch(JSON.stringify(seen), 'hidden')
})

engineTest('a container with all labels of one of ours is not ours', async t => {
  const lab = newProject()
  const { runtime, docker, projectId } = lab
  const id = await runtime.create(lab.spec('mine', await networkOf(lab)))
  t.teardown(async () => await runtime.remove(id))
  const { Config: config } = await docker.getContainer(id).inspect()
  const impostor = await foreignContainer(t, docker, { Labels: config.Labels })
  t.match(await found(runtime.inventory, impostor.id), { owner: null, isManaged: false })
  t.match(await found(runtime.inventory, id), { owner: { projectId }, isManaged: true })
})

engineTest('another installation on the same engine is foreign to this one', async t => {
  const [mine, other] = [newProject(), startLab(t)]
  const id = await other.runtime.create(other.spec('other', await networkOf(other)))
  t.match(await found(other.runtime.inventory, id), { isManaged: true })
  t.match(await found(mine.runtime.inventory, id), { owner: null, isManaged: false })
})

engineTest('what a container has connected, mounted and published is told', async t => {
  const lab = newProject()
  const { runtime, docker } = lab
  const [volume, network] = [unique('volume'), unique('network')]
  await docker.createVolume({ Name: volume })
  t.teardown(async () => await docker.getVolume(volume).remove())
  const made = await docker.createNetwork({ Name: network })
  t.teardown(async () => await made.remove())
  // Of one that leads nowhere no port is published.
  const inside = await docker.createNetwork({ Name: unique('network'), Internal: true })
  t.teardown(async () => await inside.remove())
  const container = await foreignContainer(t, docker, {
    Cmd: ['sleep', '1000'],
    ExposedPorts: { '80/tcp': {}, '53/udp': {}, '81/tcp': {} },
    HostConfig: {
      NetworkMode: network,
      Binds: [`${volume}:/data`],
      PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }], '53/udp': [{ HostPort: '' }] }
    }
  })
  t.match(await found(runtime.inventory, container.id), { volumes: [volume], networks: [], ports: [] })
  await container.start()
  const seen = await found(runtime.inventory, container.id)
  const { NetworkSettings: settings } = await container.inspect()
  const { IPAddress: address, IPPrefixLen: prefix } = settings.Networks[network] ?? {}
  t.same(seen?.networks, [{ id: made.id, ipv4Address: `${address}/${prefix}` }])
  const ports = seen?.ports ?? []
  t.same(
    ports.filter(({ containerPort }) => containerPort === 80),
    [
      {
        host: '127.0.0.1',
        hostPort: Number(settings.Ports['80/tcp']?.[0]?.HostPort),
        containerPort: 80,
        protocol: 'tcp'
      }
    ]
  )
  t.match(
    ports.filter(({ containerPort }) => containerPort === 53),
    [{ host: '', protocol: 'udp' }]
  )
  t.notOk(ports.some(({ containerPort }) => containerPort === 81))
  const networks = await runtime.inventory.networks()
  t.match(
    networks.find(({ id }) => id === made.id),
    { name: network, driver: 'bridge', scope: 'local', isInternal: false, owner: null, isManaged: false }
  )
  t.equal(networks.find(({ id }) => id === inside.id)?.isInternal, true)
  t.match(
    (await runtime.inventory.volumes()).find(({ name }) => name === volume),
    { driver: 'local', scope: 'local', owner: null, isManaged: false }
  )
})

engineTest('networks and volumes of this installation are told as those of their project', async t => {
  const lab = newProject()
  const { runtime, projectId } = lab
  const [network, volume] = [await networkOf(lab), unique('volume')]
  await runtime.ensureVolume(volume, { projectId })
  t.teardown(async () => await runtime.removeVolume(volume))
  const networks = await runtime.inventory.networks()
  t.match(
    networks.find(({ name }) => name === network),
    { owner: { projectId }, isManaged: true }
  )
  t.same(
    networks.map(({ name }) => name),
    networks.map(({ name }) => name).sort(),
    'by name'
  )
  t.match(
    (await runtime.inventory.volumes()).find(({ name }) => name === volume),
    { owner: { projectId }, isManaged: true }
  )
})

engineTest('images are told with their names, and those that nothing leads to as dangling', async t => {
  const lab = newProject()
  const { runtime, docker, projectId } = lab
  const base = await docker.getImage('busybox:lab').inspect()
  const container = await foreignContainer(t, docker)
  const name = unique('named')
  const labels = await runtime.imageLabels({ projectId, applicationId: projectId })
  const commit = async (options: object): Promise<string> => {
    const { Id: id } = (await container.commit(options)) as { Id: string }
    t.teardown(
      async () =>
        await docker
          .getImage(id)
          .remove({ force: true })
          .catch(() => {})
    )
    return id
  }
  const changes = Object.entries(labels).map(([key, value]) => `LABEL ${key}="${value}"`)
  const [built, dangling] = [
    await commit({ repo: name, tag: 'x', changes: changes.join('\n') }),
    await commit({ changes: 'LABEL of=nobody' })
  ]
  const images = await runtime.inventory.images()
  const imageOf = (id: string) => images.find(image => image.id === id)
  t.match(imageOf(base.Id), { tags: /busybox:lab/, isDangling: false, owner: null, isManaged: false })
  t.match(imageOf(built), {
    tags: [`${name}:x`],
    owner: { projectId, applicationId: projectId },
    isManaged: true,
    isDangling: false
  })
  t.match(imageOf(dangling), { tags: [], isDangling: true, isManaged: false })
  t.ok((imageOf(base.Id)?.sizeBytes ?? 0) > 1000)
  t.same(
    images.map(({ createdAt }) => createdAt.getTime()),
    images.map(({ createdAt }) => createdAt.getTime()).sort((a, b) => b - a),
    'the newest first'
  )
})

engineTest(
  'the disk of the engine is measured: images, what containers wrote, volumes and caches',
  async t => {
    const lab = newProject()
    const { runtime, docker, projectId } = lab
    const id = await runtime.create(
      lab.spec('writer', await networkOf(lab), {
        readonlyRootfs: false,
        command: [
          'sh',
          '-c',
          'dd if=/dev/zero of=/home/file bs=1M count=3; trap "exit 0" TERM; while true; do sleep 0.1; done'
        ]
      })
    )
    t.teardown(async () => await runtime.remove(id))
    const volume = unique('volume')
    await runtime.ensureVolume(volume, { projectId })
    t.teardown(async () => await runtime.removeVolume(volume))
    await runtime.start(id)
    const use = await until(async () => {
      const measured = await runtime.inventory.diskUse()
      return measured.containers.bytes >= 3 * 2 ** 20 && measured
    }, 'what the container has written')
    const base = await docker.getImage('busybox:lab').inspect()
    t.ok(use.layersBytes > 0 && use.images.bytes === use.layersBytes)
    t.ok(use.images.count > 0 && use.containers.count > 0)
    t.ok(use.sharedBytes.has(base.Id))
    t.equal(use.volumeBytes.get(volume), 0)
    for (const share of [use.images, use.containers, use.volumes, use.buildCache])
      t.ok(share.reclaimableBytes >= 0 && share.reclaimableBytes <= share.bytes)
  }
)

engineTest('those who ask while a list is made share the next one', async t => {
  const { runtime } = newProject()
  const first = runtime.inventory.networks()
  const [second, third] = await Promise.all([runtime.inventory.networks(), runtime.inventory.networks()])
  t.equal(second, third)
  t.not(await first, second, 'it begins after they have asked')
})
