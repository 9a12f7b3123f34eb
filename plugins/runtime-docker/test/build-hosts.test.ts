import { BlockList, isIP } from 'node:net'
import { settingsFrom } from 'busbar/sdk/testing'
import tap, { test } from 'tap'
import { isPrivateAddress, refusalOf, usualHostPolicy } from '../../builds/network/host-policy.js'
import { metadataRanges, parseBuildHosts, privateRanges, usualBuildHosts } from '../host/build-hosts.js'
import { settings } from '../settings.js'
import {
  addressOn,
  farAway,
  knock,
  labOn,
  metadata,
  neighbour,
  otherMetadata,
  runIn,
  startApplication,
  startMachine,
  startNeighbour
} from './host-machine.js'
import type { Lab } from './lab.js'

tap.setTimeout(300_000)

/** A container on the network for builds of a project, as a step of one is, or a build engine. */
async function startBuilder(
  lab: Lab,
  network?: string
): Promise<{ readonly id: string; readonly gateway: string }> {
  const name = network ?? (await lab.runtime.ensureBuildNetwork(lab.projectId))
  const id = await lab.runtime.create(lab.spec('builder', name))
  await lab.runtime.start(id)
  return { id, ...(await addressOn(lab, id, name)) }
}

const reached = async (
  lab: Lab,
  id: string,
  places: readonly (readonly [string, number])[]
): Promise<string[]> =>
  await runIn(
    lab,
    id,
    places.map(([address, port]) => `echo ${address} $(${knock(address, port)})`).join(';')
  )

test('what a build reaches beyond its machine', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  await startNeighbour(t, engine)

  await t.test('is no private address, unless it is allowed', async t => {
    const lab = labOn(t, engine, { BUILD_PRIVATE_HOSTS: 'deny' })
    const { id, gateway } = await startBuilder(lab)
    t.equal(lab.runtime.hostLimits.kind, 'limited')
    const places = [
      [farAway, 80],
      [neighbour, 80],
      [neighbour, 53],
      [metadata, 80],
      [otherMetadata, 80],
      [otherMetadata, 53],
      [gateway, 80],
      [gateway, 5432]
    ] as const
    const usual = [`${gateway} 80 open`, `${gateway} 5432 closed`]
    t.same(
      await reached(lab, id, places),
      [
        `${farAway} 80 open`,
        `${neighbour} 80 closed`,
        `${neighbour} 53 open`,
        `${metadata} 80 closed`,
        `${otherMetadata} 80 closed`,
        `${otherMetadata} 53 open`,
        ...usual
      ],
      'but for its name server'
    )
    const application = await startApplication(lab)
    t.same(await reached(lab, application.id, [[neighbour, 80]]), [`${neighbour} 80 open`])

    for (const setting of [
      'allow',
      `192.0.2.0/24, ${neighbour}`,
      '192.168.0.0/16,fd00::/8',
      '169.254.0.0/16,0.0.0.0/0'
    ]) {
      const other = labOn(t, engine, { BUILD_PRIVATE_HOSTS: setting })
      const builder = await startBuilder(other)
      t.same(
        await reached(other, builder.id, places.slice(0, 6)),
        [
          `${farAway} 80 open`,
          `${neighbour} 80 open`,
          `${neighbour} 53 open`,
          `${metadata} 80 closed`,
          `${otherMetadata} 80 closed`,
          `${otherMetadata} 53 open`
        ],
        setting
      )
    }
  })

  await t.test('is so whatever it reaches of its machine', async t => {
    const lab = labOn(t, engine, { BUILD_PRIVATE_HOSTS: 'deny', HOST_PORTS_FOR_CONTAINERS: 'all' })
    const { id, gateway } = await startBuilder(lab)
    t.equal(lab.runtime.hostLimits.kind, 'limited')
    t.same(
      await reached(lab, id, [
        [gateway, 5432],
        [neighbour, 80],
        [metadata, 80],
        [farAway, 80]
      ]),
      [`${gateway} 5432 open`, `${neighbour} 80 closed`, `${metadata} 80 closed`, `${farAway} 80 open`]
    )
    const free = labOn(t, engine, { BUILD_PRIVATE_HOSTS: 'allow', HOST_PORTS_FOR_CONTAINERS: 'all' })
    await startBuilder(free)
    t.equal(free.runtime.hostLimits.kind, 'unlimited')
  })

  await t.test('is no application, at its address or at a port of the machine that leads to it', async t => {
    const lab = labOn(t, engine, { BUILD_PRIVATE_HOSTS: 'allow' })
    const { id } = await startBuilder(lab)
    const application = await startApplication(lab)
    const serving = await lab.docker
      .getContainer(application.id)
      .exec({ Cmd: ['sh', '-c', 'while true; do echo hello | nc -l -p 8000; done'] })
    await serving.start({ Detach: true })
    t.same(await reached(lab, id, [[application.address, 8000]]), [`${application.address} 8000 closed`])
  })

  await t.test('is the same in a network that an older version has made', async t => {
    const lab = labOn(t, engine, { BUILD_PRIVATE_HOSTS: 'deny' })
    const name = await lab.runtime.ensureBuildNetwork(lab.projectId)
    const network = lab.docker.getNetwork(name)
    const { Labels, Options, IPAM } = await network.inspect()
    const bridge = Options?.['com.docker.network.bridge.name'] ?? ''
    await network.remove()
    const older = await lab.docker.createNetwork({
      Name: name,
      Driver: 'bridge',
      IPAM,
      Labels,
      Options: { ...Options, 'com.docker.network.bridge.name': bridge.replace(/x(.{7})$/, '0$1') }
    })
    const next = labOn(t, engine, { BUILD_PRIVATE_HOSTS: 'deny' }, lab.instanceId)
    t.equal(await next.runtime.ensureBuildNetwork(lab.projectId), name)
    t.equal((await lab.docker.getNetwork(name).inspect()).Id, older.id)
    const { id } = await startBuilder(lab, name)
    t.same(
      await reached(lab, id, [
        [farAway, 80],
        [neighbour, 80]
      ]),
      [`${farAway} 80 open`, `${neighbour} 80 closed`]
    )
  })
})

test('BUILD_PRIVATE_HOSTS is a word, or addresses and ranges', async t => {
  t.same(parseBuildHosts(' Allow'), usualBuildHosts(true))
  t.same(parseBuildHosts('deny'), usualBuildHosts(false))
  t.same(parseBuildHosts('10.0.0.0/8, 192.168.1.7,FD00::/8,::1'), {
    allowsAll: false,
    allowed: { ipv4: ['10.0.0.0/8', '192.168.1.7/32'], ipv6: ['fd00::/8', '::1/128'] }
  })
  for (const wrong of [
    '',
    'git.lan',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/8,',
    '10.0.0.0/8 192.168.0.0/16',
    'fe80::1%eth0',
    '10.0.0.0/8 -j ACCEPT',
    '10.0.0.0/8\nCOMMIT'
  ])
    t.equal(parseBuildHosts(wrong), undefined, JSON.stringify(wrong))
  t.throws(() => settingsFrom(settings, { BUILD_PRIVATE_HOSTS: 'git.lan' }), {
    message: /^BUILD_PRIVATE_HOSTS is "git.lan"; it takes allow, deny, or addresses and ranges/
  })
})

test('what is private for the containers of builds is what is so for the platform itself', async t => {
  const ranges = new BlockList()
  // A list of Node's takes it for all of IPv4.
  for (const [family, list] of Object.entries(privateRanges))
    for (const range of list.filter(range => range !== '::ffff:0:0/96')) {
      const [address = '', prefix] = range.split('/')
      ranges.addSubnet(address, Number(prefix), family === 'ipv6' ? 'ipv6' : 'ipv4')
    }
  const hextets = Array.from({ length: 2 ** 16 }, (_, n) => n)
  const differing = [
    ...hextets.map(n => `${n >> 8}.${n & 255}.1.1`),
    ...hextets.map(n => `${n >> 8}.0.${n & 255}.1`),
    ...hextets.map(n => `192.${n >> 8}.${n & 255}.1`),
    ...hextets.map(n => `${n.toString(16)}::1:1`),
    ...hextets.map(n => `64:ff9b:${n.toString(16)}::1`),
    ...hextets.map(n => `2001:${n.toString(16)}::1`),
    '::1',
    '::',
    '::ffff:0:10.0.0.1'
  ].filter(
    address => ranges.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') !== isPrivateAddress(address)
  )
  t.same(differing, [])

  for (const range of [...metadataRanges.ipv4, ...metadataRanges.ipv6]) {
    const address = range === '169.254.0.0/16' ? metadata : range.replace(/\/.*$/, '')
    t.equal(refusalOf(usualHostPolicy(true), 'x', address), 'metadata', range)
  }
})
