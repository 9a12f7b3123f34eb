import { testClock, until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import type { ApplicationTargets, ProxyDriver } from '../api.js'
import { Routing } from '../routing.js'

const target = (applicationId: string, containerId: string) => ({
  application_id: applicationId,
  deployment_id: 'd',
  container_id: containerId,
  host: '192.0.2.1',
  port: 8080,
  is_running: true
})

/** A routing over rows in memory, which counts what it is asked. */
function kit() {
  const rows = new Map([
    ['a', target('a', 'first')],
    ['b', target('b', 'first')]
  ])
  const asked: string[] = []
  const served = new Map<string, ApplicationTargets | null>()
  const hooks = {
    whileTold: async (): Promise<void> => {},
    refusal: null as string | null,
    loads: 0,
    domains: [] as object[]
  }
  const driver: ProxyDriver = {
    name: 'test',
    abilities: [],
    lackRemedy: '',
    load: async () => {
      hooks.loads += 1
      if (hooks.refusal !== null) throw new Error(hooks.refusal)
    },
    retarget: async (id, targets) => {
      served.set(id, targets)
      await hooks.whileTold()
    },
    switchTo: async (id, targets) => {
      served.set(id, targets)
      return null
    },
    release: async () => {},
    report: async () => ({ fault: null, tlsAt: null, tlsFault: null }),
    ports: () => ({ http: 80, https: null })
  }
  const noted = <T>(name: string, answer: () => T) => {
    return async () => {
      asked.push(name)
      return answer()
    }
  }
  const clock = testClock()
  const routing = new Routing({
    store: {
      domains: noted('domains', () => hooks.domains),
      features: noted('features', () => []),
      ownHosts: noted('ownHosts', () => []),
      targets: noted('targets', () => [...rows.values()]),
      allPorts: noted('allPorts', () => new Map([['a', [9000]]])),
      portsOf: noted('portsOf', () => []),
      target: async (id: string) => rows.get(id),
      setTarget: async (id: string, { containerId }: { containerId: string }) =>
        rows.set(id, target(id, containerId)) !== undefined
    },
    drivers: { entries: () => [{ key: 'test', plugin: 'test', value: driver }] },
    certificates: { open: async () => [] },
    registry: {},
    runtime: { get: () => undefined },
    images: { get: () => undefined },
    bus: { signal: async () => {}, onSignal: () => () => {} },
    instance: { listening: () => ({ host: '127.0.0.1', port: 1 }), trustedProxies: [] },
    settings: { dashboard_domain: 'panel.example.com' },
    clock,
    log: pino({ level: 'silent' })
  } as unknown as ConstructorParameters<typeof Routing>[0])
  const containerOf = (id: string): string | undefined => served.get(id)?.get(null)?.containerId
  return { routing, asked, served, hooks, clock, containerOf }
}

test('a driver that comes is told of all applications by one question for their ports', async t => {
  const { routing, asked, served } = kit()
  await routing.refresh()
  t.same([...(served.get('a')?.keys() ?? [])], [null, 9000])
  t.same([...(served.get('b')?.keys() ?? [])], [null])
  t.notOk(asked.includes('portsOf'))
  t.equal(asked.filter(one => one === 'allPorts').length, 1)
})

test('a deploy while a driver comes is not undone by what was read before', async t => {
  const { routing, hooks, containerOf } = kit()
  let isFirst = true
  hooks.whileTold = async () => {
    if (!isFirst) return
    isFirst = false
    // The driver of before is in charge until the new one has been told of all.
    await routing.switchTo('b', { deploymentId: 'd', containerId: 'second', host: '192.0.2.2', port: 8080 })
  }
  await routing.refresh()
  t.equal(containerOf('a'), 'first')
  t.equal(containerOf('b'), 'second')
})

test('a table that was refused is given again after five seconds, whatever the clock of the machine is set to', async t => {
  const { routing, hooks, clock } = kit()
  const stop = routing.watch()
  t.teardown(stop)
  hooks.refusal = 'no'
  await routing.refresh()
  t.equal(routing.fault(), 'no')
  const { loads } = hooks
  await clock.advance(4000)
  t.equal(hooks.loads, loads, 'and not before, though it has never served')
  clock.set(-3_600_000)
  hooks.refusal = null
  await clock.advance(2000)
  await until(() => routing.fault() === null, 'that it is given again')
  t.ok(hooks.loads > loads)
  t.match(routing.runs(), { last: { error: null } })
})

test('requests are of whom their hostname and path lead to, however the path is written, and those of the platform of nobody', async t => {
  const { routing, hooks } = kit()
  const domain = (hostname: string, path: string, application_id: string) => ({
    ...{ id: hostname + path, hostname, path, application_id, internal_path: '', ssl_mode: 'off' },
    certificate_id: null
  })
  hooks.domains = [
    domain('*.example.com', '/', 'a'),
    domain('*.example.com', '/shop', 'b'),
    domain('www.example.com', '/only', 'c')
  ]
  const asked = [
    ['x.example.com', '/'],
    ['x.example.com', '/shop/cart?y=/'],
    ['x.example.com', '//sho%70?y'],
    ['x.example.com.', '/shopping'],
    ['www.example.com', '/only'],
    ['www.example.com', '/'],
    ['panel.example.com', '/'],
    ['panel.example.com.', '/shop'],
    ['elsewhere.test', '/']
  ] as const
  t.same(await routing.applicationsOf(asked.map(([hostname, path]) => ({ hostname, path }))), [
    ...['a', 'b', 'b', 'a', 'c'],
    ...[null, null, null, null]
  ])
})
