import type { ContainerSpec } from 'busbar/api/containers'
import { test } from 'tap'
import { containerOptions } from '../container-options.js'
import type { Identity } from '../identity.js'

const identity = { ofContainer: () => ({ labels: {}, mark: 'mark' }) } as unknown as Identity
const spec: ContainerSpec = {
  name: 'app',
  image: 'app:1',
  owner: { projectId: 'p' },
  network: 'n',
  env: {},
  cpuLimit: 0,
  memoryLimit: 0,
  caps: 'minimal',
  readonlyRootfs: true
}
const second = 1_000_000_000
const made = (changes: Partial<ContainerSpec> = {}, imageHealth?: object) =>
  containerOptions({ ...spec, ...changes }, identity, {
    imageLabels: undefined,
    parentGroup: undefined,
    imageHealth: imageHealth as never
  })

test('a health check of an image runs every two seconds at most: the engine starts a program each time', async t => {
  t.same(made({}, { Test: ['CMD', 'x'], Interval: 1_000_000 }).Healthcheck, { Interval: 2 * second })
  t.same(made({}, { Test: ['CMD', 'x'], Interval: 5 * second, StartInterval: 1_000_000 }).Healthcheck, {
    StartInterval: 2 * second
  })
  for (const own of [undefined, null, {}, { Interval: 2 * second }, { Interval: 0 }])
    t.notOk('Healthcheck' in made({}, own ?? undefined), JSON.stringify(own))
  const healthCommand = { command: 'true', intervalSeconds: 7, timeoutSeconds: 3, retries: 2 }
  t.match(made({ healthCommand } as Partial<ContainerSpec>, { Interval: 1 }).Healthcheck, {
    Interval: 7 * second
  })
})

test('a program that serves the machine is in its network, with what it is given and no right but to listen', async t => {
  const folders = [{ path: '/srv/proxy' }, { path: '/etc/root.pem', readOnly: true }]
  const of = (uid: number) =>
    made({ network: 'host', memoryLimit: 1000, onMachine: { user: { uid, gid: 7 }, folders } })
  const options = of(0)
  t.match(options.HostConfig, {
    NetworkMode: 'host',
    CapDrop: ['ALL'],
    CapAdd: ['NET_BIND_SERVICE'],
    SecurityOpt: ['no-new-privileges:true', 'label=disable'],
    ReadonlyRootfs: true,
    Memory: 1000,
    OomScoreAdj: 0,
    Mounts: [
      { Type: 'bind', Source: '/srv/proxy', Target: '/srv/proxy', ReadOnly: false },
      { Type: 'bind', Source: '/etc/root.pem', Target: '/etc/root.pem', ReadOnly: true }
    ]
  })
  t.equal(options.User, '0:7')
  t.notOk('NetworkingConfig' in options)
  t.same(
    of(1000).HostConfig?.SecurityOpt,
    ['label=disable'],
    'else its program would get no right from its file'
  )
  t.notOk('User' in made())
  t.equal(made().HostConfig?.NetworkMode, 'n')
})

test('what waits in sockets counts for the memory of a container, and none may send with any sender', async t => {
  t.match(made({ memoryLimit: 1000 }).HostConfig, { Memory: 1000, MemorySwap: 1000, KernelMemoryTCP: 1000 })
  t.notOk('KernelMemoryTCP' in (made().HostConfig ?? {}))
  t.same(made().HostConfig?.CapDrop, ['ALL'])
  t.same(made({ caps: 'standard' }).HostConfig?.CapDrop, ['NET_RAW'])
  t.same(made({ caps: 'standard', runsContainers: true }).HostConfig?.CapDrop, [])
})
