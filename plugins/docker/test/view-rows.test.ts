import type { ListedContainer, ListedVolume } from 'busbar/api/containers'
import { test } from 'tap'
import {
  isWithin,
  membersOfNetworks,
  ownerAnswer,
  portMap,
  usersOfVolumes,
  volumeKind,
  volumeOwner
} from '../view-rows.js'

const container = (id: string, more: Partial<ListedContainer> = {}): ListedContainer => ({
  id,
  name: id,
  image: 'busybox',
  imageId: 'sha256:a',
  status: 'running',
  ports: [],
  networks: [],
  volumes: [],
  owner: null,
  isManaged: false,
  createdAt: new Date(0),
  ...more
})
const volume = (name: string, more: Partial<ListedVolume> = {}): ListedVolume => ({
  name,
  driver: 'local',
  mountpoint: '/',
  scope: 'local',
  createdAt: null,
  owner: null,
  isManaged: false,
  ...more
})

test('a port of the machine is told with its address where it has one, and with its protocol where that is not TCP', t => {
  const port = { host: '', hostPort: 8080, containerPort: 80, protocol: 'tcp' }
  t.same(
    portMap([
      port,
      { ...port, host: '127.0.0.1' },
      { ...port, host: '::1' },
      { ...port, hostPort: 53, containerPort: 5353, protocol: 'udp' }
    ]),
    { 8080: '80/tcp', '127.0.0.1:8080': '80/tcp', '[::1]:8080': '80/tcp', '53/udp': '5353/udp' }
  )
  t.end()
})

test('a thing belongs to a database, else to an application, else to a project', t => {
  const owner = { projectId: 'p', applicationId: 'a', deploymentId: 'd' }
  t.same(ownerAnswer(owner, 'shop'), {
    type: 'application',
    id: 'a',
    name: 'shop',
    project_id: 'p',
    deployment_id: 'd'
  })
  t.match(ownerAnswer({ projectId: 'p', databaseId: 'b' }, ''), {
    type: 'database',
    id: 'b',
    deployment_id: null
  })
  t.match(ownerAnswer({ projectId: 'p' }, ''), { type: 'project', id: 'p' })
  t.end()
})

test('who has pins sees what belongs to their projects, and nothing that belongs to none', t => {
  const owned = container('a', { owner: { projectId: 'p' }, isManaged: true })
  t.ok(isWithin(owned, null) && isWithin(owned, ['p']) && isWithin(container('b'), null))
  t.notOk(isWithin(owned, ['q']) || isWithin(owned, []) || isWithin(container('b'), ['p']))
  t.end()
})

test('a volume without a name is of the container of this platform that has it, and one with a name is not', t => {
  const [anonymous, named] = ['a'.repeat(64), 'data']
  const mine = container('mine', { owner: { projectId: 'p' }, isManaged: true, volumes: [anonymous, named] })
  const users = usersOfVolumes([container('other', { volumes: [anonymous, anonymous] }), mine])
  const ownerOf = (name: string) => volumeOwner(volume(name), users.get(name) ?? [])
  t.match(ownerOf(anonymous), { owner: { projectId: 'p' }, isManaged: true })
  t.match(ownerOf(named), { owner: null, isManaged: false })
  t.match(ownerOf('b'.repeat(64)), { owner: null, isManaged: false })
  t.equal(users.get(anonymous)?.length, 2, 'a container that has mounted it twice counts once')
  t.end()
})

test('what builds keep for later is a cache, and everything else of this platform is data', t => {
  for (const name of ['busbar-builder-1', 'busbar-cnb-cache-1', 'busbar-cnb-launch-1']) {
    t.equal(volumeKind(name, true), 'cache')
    t.equal(volumeKind(name, false), '', 'a foreign one of that name')
  }
  t.equal(volumeKind('busbar-vol-1-data', true), 'data')
  t.end()
})

test('a network has the containers that are connected to it', t => {
  const members = membersOfNetworks([
    container('a', { networks: [{ id: 'n', ipv4Address: '10.0.0.2/26' }] }),
    container('b', {
      networks: [
        { id: 'n', ipv4Address: '' },
        { id: 'm', ipv4Address: '10.0.1.2/26' }
      ]
    })
  ])
  t.same(members.get('n'), [
    { id: 'a', name: 'a', ipv4_address: '10.0.0.2/26' },
    { id: 'b', name: 'b', ipv4_address: '' }
  ])
  t.equal(members.get('m')?.length, 1)
  t.end()
})
