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

test('what waits in sockets counts for the memory of a container, and none may send with any sender', async t => {
  t.match(made({ memoryLimit: 1000 }).HostConfig, { Memory: 1000, MemorySwap: 1000, KernelMemoryTCP: 1000 })
  t.notOk('KernelMemoryTCP' in (made().HostConfig ?? {}))
  t.same(made().HostConfig?.CapDrop, ['ALL'])
  t.same(made({ caps: 'standard' }).HostConfig?.CapDrop, ['NET_RAW'])
  t.same(made({ caps: 'standard', runsContainers: true }).HostConfig?.CapDrop, [])
})
