import { randomBytes } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, type HappyFixture, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../lab/engine.js'
import { rotatingSample } from '../../scripts/rotating-sample.mjs'
import {
  call,
  fixtureFor,
  type Happy,
  happyOf,
  leftovers,
  neededBy,
  neighboursOf,
  order,
  running,
  strangers,
  turnedOffWith
} from './happy-round.js'

const happy = new Map<string, Happy>()

/** Calls every operation, and listens on every channel, of those of `ids` that run. */
async function everythingWorks(k: TestKernel, ids: readonly string[]): Promise<string[]> {
  const fixture = await fixtureFor(k, happy, neededBy(k, ids))
  const faults: string[] = []
  for (const { id, run } of running(k)) {
    if (!ids.includes(id)) continue
    for (const { method, url } of run?.records.routes ?? []) {
      const make = happy.get(id)?.calls[`${method} ${url.replace(/:(\w+)/g, '{$1}')}`]
      if (make === undefined && method !== 'GET') {
        faults.push(`${method} ${url} has no happy call in plugins/${id}/test/happy-calls.ts`)
        continue
      }
      const { fault } = await call(fixture, method, url, (await make?.(fixture)) ?? {})
      if (fault !== null) faults.push(fault)
    }
  }
  faults.push(...(await silentChannels(fixture, ids)))
  await fixture.admin.delete(`/api/projects/${fixture.ids.projectId ?? ''}`)
  // Before the next plugin goes: one that is off keeps its rows, and the project waits for it.
  for (const left of await leftovers(k))
    faults.push(`a deleted project is still there: ${JSON.stringify(left)}`)
  return faults
}

async function silentChannels(
  { k, admin, ids }: HappyFixture,
  plugins: readonly string[]
): Promise<string[]> {
  const socket = await k.socket(admin)
  const faults: string[] = []
  for (const { id, run } of running(k)) {
    if (!plugins.includes(id)) continue
    for (const { prefix, param, name, events, endsWith } of run?.records.channels ?? []) {
      const channel = prefix + (param === null ? '' : (ids[param] ?? ''))
      socket.subscribe(channel)
      const event = Object.keys(events).find(one => one !== endsWith) ?? ''
      const marker = `nowhere:${name}`
      socket.subscribe(marker)
      await socket.next(frame => frame.channel === marker)
      // Said until it is heard: a subscription is not acknowledged, and deciding it may take a query.
      const speaking = setInterval(() => {
        k.publish(channel, event, 'happy')
      }, 20)
      const heard = await socket
        .next(frame => frame.channel === channel && (frame.data === 'happy' || frame.event === 'error'))
        .catch((error: Error) => error)
      clearInterval(speaking)
      if (heard instanceof Error || heard.event === 'error') faults.push(`channel ${channel} is silent`)
    }
  }
  await socket.close()
  return faults
}

/** With its last network an installation takes its limits from the machine, and sets them anew with the next. */
async function keepNetwork(k: TestKernel, admin: TestClient): Promise<void> {
  const slug = `stays-${randomBytes(4).toString('hex')}`
  const { body } = await admin.post('/api/projects', { name: 'Stays', slug })
  await k.service(containerRuntime).ensureNetwork({ id: body.id, slug })
}

/** It and what needs it are off then, and say so; nobody else is. */
async function turnOff(t: Test, k: TestKernel, admin: TestClient, id: string): Promise<void> {
  const group = turnedOffWith(k, id)
  const before = order(k)
  t.equal((await admin.post(`/api/plugins/${id}/disable`, { cascade: true })).status, 200)
  t.same(
    order(k).sort(),
    before.filter(other => !group.includes(other)).sort(),
    `${id} and what needs it are off, nobody else`
  )
  for (const gone of group) {
    for (const { method, url } of k.kernel.reconciler.entries.get(gone)?.loaded?.records.routes ?? []) {
      const answer = await k.as.anonymous().send(method, url.replace(/:\w+/g, 'x'))
      t.match(
        answer,
        { status: 404, body: { code: 'E_PLUGIN_OFF', plugin: gone } },
        `${method} ${url} says that ${gone} is off`
      )
    }
  }
}

test('every non-essential plugin can be turned off and on again, and nobody else notices', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  for (const id of k.kernel.reconciler.entries.keys()) happy.set(id, await happyOf(id))
  const admin = await k.as.session()
  await keepNetwork(k, admin)
  t.same(await everythingWorks(k, order(k)), [], 'everything works to begin with')

  const optional = running(k)
    .filter(({ discovered }) => 'manifest' in discovered && !discovered.manifest.essential)
    .map(({ id }) => id)
  const sets = strangers(k, optional)
  const nameOf = (set: readonly string[]): string => set.join(', ')
  // Every operation of every neighbour of every plugin is a product that grows by both.
  const asked = rotatingSample('what neighbours do while plugins are off', sets.map(nameOf), {
    always: [],
    others: Math.ceil(sets.length / 2)
  })
  for (const set of sets) {
    await t.test(`${nameOf(set)}: turned off and on`, async t => {
      const before = order(k)
      const neighbours = set.flatMap(id => neighboursOf(k, id))
      for (const id of set) await turnOff(t, k, admin, id)
      // Those that may use them, and those that they use: nobody else knows that they are there.
      const left = order(k).filter(id => neighbours.includes(id))
      if (asked.has(nameOf(set)))
        t.same(await everythingWorks(k, left), [], 'everything of their neighbours works')
      const gone = set.flatMap(id => turnedOffWith(k, id))
      for (const back of before.filter(one => gone.includes(one)))
        t.equal((await admin.post(`/api/plugins/${back}/enable`)).status, 200, `${back} is on`)
      t.same(order(k).sort(), [...before].sort())
    })
  }
  t.same(await everythingWorks(k, order(k)), [], 'everything works in the end')
})
