import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import tap, { test } from 'tap'
import type { SecondEngine } from '../../../lab/second-engine.js'
import { installationTag } from '../host/installation-tag.js'
import {
  holdingPort,
  knock,
  labOn,
  neighbour,
  runIn,
  startApplication,
  startMachine,
  startNeighbour
} from './host-machine.js'

/* Each on a machine of its own: they count what is in its tables, kill its engine, or have it lack something. */

tap.setTimeout(300_000)

const rulesOf = async (engine: SecondEngine): Promise<string[]> =>
  [
    ...(await engine.onMachine('iptables-save')).split('\n'),
    ...(await engine.onMachine('ip6tables-save')).split('\n')
  ].filter(line => line.includes('BUSBAR-'))

/** Where the programs of the packet filter have that module. */
const modules = (name: string): string[] =>
  readdirSync('/usr/lib')
    .map(folder => join('/usr/lib', folder, 'xtables', name))
    .filter(path => existsSync(path))

test("one project's containers do not fill the machine's table of connections", async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  await startNeighbour(t, engine)
  const most = 24
  const lab = labOn(t, engine, { MAX_CONTAINER_CONNECTIONS: String(most) })
  const greedy = await startApplication(lab, 'greedy')
  const other = await startApplication(lab, 'other')
  const inTable = async (): Promise<number> =>
    Number(await engine.onMachine('cat', '/proc/sys/net/netfilter/nf_conntrack_count'))
  const before = await inTable()

  const holding = await lab.docker.getContainer(greedy.id).exec({
    Cmd: ['sh', '-c', `for i in $(seq 120); do sleep 60 | nc ${neighbour} ${holdingPort} & done; wait`]
  })
  await holding.start({ Detach: true })
  await until(async () => (await inTable()) - before >= most, 'the most that are open are open')
  await sleep(1_000)
  t.ok((await inTable()) - before < most + 12, `${await inTable()} from ${before}`)
  t.same(await runIn(lab, greedy.id, knock(neighbour, 5432)), ['5432 closed'], 'it is told at once')
  t.same(await runIn(lab, greedy.id, knock(greedy.gateway, 80)), ['80 closed'], 'the machine counts as well')
  t.same(await runIn(lab, other.id, knock(neighbour, 5432)), ['5432 open'])

  await lab.runtime.limits.refresh()
  t.same(await runIn(lab, greedy.id, knock(neighbour, 5432)), ['5432 closed'], 'it is not forgotten')

  // Those that have ended stay in the table for a while, and so does what is no connection.
  const hasty = await startApplication(lab, 'hasty')
  const between = await inTable()
  await runIn(
    lab,
    hasty.id,
    `for i in $(seq 60); do nc ${neighbour} 5432 </dev/null >/dev/null 2>&1; nc -u -w 1 ${neighbour} 9 <&- >/dev/null 2>&1 & done`
  )
  t.ok((await inTable()) - between < 2 * most, `${await inTable()} from ${between}`)
})

test('a kernel that does not know where packets should come from is limited as far as it can be, and health says so', async t => {
  const engine = await startMachine(t, { lacks: modules('libxt_rpfilter.so') })
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const { id, gateway } = await startApplication(lab)
  t.match(lab.runtime.hostLimits, { kind: 'unguarded', reason: /rpfilter/ })
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 closed'])
})

test('the rules are set once however often they are asked for, again when they were lost, and go with the last network', async t => {
  const engine = await startMachine(t)
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const neighbouring = labOn(t, engine)
  const { id, gateway } = await startApplication(lab)
  await startApplication(neighbouring)
  const first = await rulesOf(engine)
  const tag = installationTag(lab.instanceId)
  await Promise.all([
    lab.runtime.limits.refresh(),
    lab.runtime.limits.refresh(),
    labOn(t, engine, {}, lab.instanceId).runtime.limits.refresh()
  ])
  t.same((await rulesOf(engine)).sort(), first.sort(), 'nothing is there twice')

  await engine.onMachine('iptables', '-F', 'INPUT')
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 open'])
  await lab.runtime.limits.refresh()
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 closed'])
  t.equal(
    (await rulesOf(engine)).filter(line => line === `-A INPUT -j BUSBAR-${tag}-INPUT`).length,
    2,
    'one for each kind of address'
  )

  await engine.kill()
  await engine.start()
  await lab.runtime.limits.refresh()
  const again = await startApplication(lab, 'again')
  t.same(
    await runIn(lab, again.id, knock(again.gateway, 5432)),
    ['5432 closed'],
    'and after a crash of the engine'
  )

  for (const { id: container, owner } of await lab.runtime.list({})) {
    await lab.runtime.remove(container)
    await lab.runtime.removeNetworks(owner.projectId ?? '')
  }
  t.same(
    (await rulesOf(engine)).filter(line => line.includes(tag)),
    []
  )
  t.ok(
    (await rulesOf(engine)).some(line => line.includes(installationTag(neighbouring.instanceId))),
    'those of another installation stay'
  )
  t.same(
    (await engine.docker.listImages({ all: true })).flatMap(({ RepoTags }) => RepoTags ?? []),
    ['busybox:lab']
  )
  t.equal((await engine.docker.listContainers({ all: true })).length, 1)
})

test('where the machine has no packet filter a deploy goes on, and health says what is not limited', async t => {
  const engine = await startMachine(t, { lacks: ['/usr/sbin/iptables'] })
  if (engine === undefined) return
  const lab = labOn(t, engine)
  const { id, gateway } = await startApplication(lab)
  t.match(lab.runtime.hostLimits, { kind: 'failed', reason: /has no iptables-save/ })
  t.same(await runIn(lab, id, knock(gateway, 5432)), ['5432 open'])
})
