import { setImmediate as turn } from 'node:timers/promises'
import type { FoundCredential } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { authKit, sessionOf, tokenOf } from './auth-kit.js'

/** Holds something open with each credential; tells which have been lost. */
function holder() {
  const kit = authKit()
  const lost: string[] = []
  return {
    ...kit,
    lost,
    async hold(name: string, { caller }: FoundCredential): Promise<() => void> {
      const release = kit.watch.hold(caller, () => {
        lost.push(name)
      })
      await settled()
      return release
    }
  }
}

/** What has ended is told in turns with other loops. */
async function settled(): Promise<void> {
  for (let n = 0; n < 5; n++) await turn()
}

test('what has ended is told once to those who hold it, and to nobody else', async t => {
  const { credentials, current, hold, lost } = holder()
  const [phone, desk, token] = [sessionOf('phone'), sessionOf('desk'), tokenOf('ci')]
  for (const found of [phone, desk, token]) current.set(found.caller, found)
  await hold('phone', phone)
  await hold('phone too', phone)
  await hold('desk', desk)
  await hold('token', token)
  const release = await hold('given back', phone)
  release()
  current.delete(phone.caller)
  for (const id of ['desk', 'phone', 'phone']) await credentials.forget('session', id)
  await settled()
  t.same(lost, ['phone', 'phone too'])
  current.delete(token.caller)
  await credentials.forget('all', '')
  await settled()
  t.same(lost, ['phone', 'phone too', 'token'])
})

test('what had ended before it was held is told', async t => {
  const { hold, lost } = holder()
  await hold('late', sessionOf('gone'))
  t.same(lost, ['late'])
})

test('an answer from before the end does not count', async t => {
  const { credentials, current, hold, lost, gate } = holder()
  const found = sessionOf('desk')
  current.set(found.caller, found)
  const open = gate.close()
  await hold('desk', found)
  current.delete(found.caller)
  await credentials.forget('session', 'desk')
  open()
  await settled()
  t.same(lost, ['desk'])
})

test('a credential that gives other rights is lost; another name or order of pins is no other right', async t => {
  const { credentials, current, hold, lost } = holder()
  const found = tokenOf('ci', { pins: ['a', 'b'] })
  const { caller } = found
  if (caller.kind !== 'token') throw new Error(caller.kind)
  current.set(caller, found)
  await hold('token', found)
  const becomes = async (changed: Partial<typeof caller>): Promise<void> => {
    current.set(caller, { ...found, caller: { ...caller, ...changed } })
    await credentials.forget('token', 'ci')
    await settled()
  }
  await becomes({ tokenName: 'deploys', pins: ['b', 'a'], user: { ...caller.user, username: 'lady' } })
  t.same(lost, [])
  await becomes({ pins: ['a'] })
  t.same(lost, ['token'])
})

test('what expires is asked for then, and lost unless it has been prolonged', async t => {
  const { clock, current, hold, lost, watch, reads } = holder()
  const until = (ms: number, found: FoundCredential): FoundCredential => ({
    ...found,
    expiresAt: new Date(clock.now().getTime() + ms)
  })
  const found = sessionOf('desk')
  current.set(found.caller, until(1000, found))
  await hold('desk', found)
  await watch.askForExpired()
  t.equal(reads.length, 1, 'nothing is asked before')
  current.set(found.caller, until(2000, found))
  await clock.advance(1000)
  await watch.askForExpired()
  t.same(lost, [])
  await clock.advance(1000)
  await watch.askForExpired()
  await settled()
  t.same(lost, ['desk'])
})

test('while identity is off nothing is lost, and it is asked again; an answer that fails is a refusal', async t => {
  const { credentials, current, hold, lost, plugged, watch } = holder()
  const [stays, goes, fails] = [sessionOf('stays'), sessionOf('goes'), sessionOf('fails')]
  for (const found of [stays, goes, fails]) current.set(found.caller, found)
  await hold('stays', stays)
  await hold('goes', goes)
  const { source } = plugged
  plugged.source = undefined
  await credentials.forget('all', '')
  current.delete(goes.caller)
  await watch.askForExpired()
  t.same(lost, [])
  plugged.source = source
  await watch.askForExpired()
  await settled()
  t.same(lost, ['goes'])
  await hold('fails', fails)
  plugged.source = {
    find: async () => undefined,
    current: async () => {
      throw new Error('no database')
    }
  }
  await credentials.forget('session', 'fails')
  await settled()
  t.same(lost, ['goes', 'fails'])
})

test('many that end with one credential leave turns to others, and one that closes meanwhile is not told', async t => {
  const { credentials, current, watch } = authKit()
  const found = sessionOf('desk')
  current.set(found.caller, found)
  let turns = 0
  let isCounting = true
  const count = () => {
    turns++
    if (isCounting) setImmediate(count)
  }
  t.teardown(() => {
    isCounting = false
  })
  setImmediate(count)
  const toldAt: number[] = []
  const releases = Array.from({ length: 6 }, () =>
    watch.hold(found.caller, () => {
      toldAt.push(turns)
      releases[5]?.()
      // Longer than a turn may be.
      for (const end = performance.now() + 12; performance.now() < end; );
    })
  )
  await settled()
  current.delete(found.caller)
  await credentials.forget('session', 'desk')
  await until(() => toldAt.length === 5, 'they are told')
  await settled()
  t.equal(toldAt.length, 5)
  t.equal(new Set(toldAt).size, 5, 'each in another turn')
})
