import { definePlugin } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { rolloutHooks, type TrafficRouter, trafficRouters } from '../api.js'
import { engine, type Mode, openLab, sample } from './deploy-lab.js'

type Call = 'prepare' | 'switchTo' | 'revert' | 'drain'

/** What is done within a call, by `<plugin> <call>`, before it answers. */
const within = new Map<string, () => unknown>()
const calls: string[] = []
const proofs: Record<string, Awaited<ReturnType<Drain>>> = {
  north: { served: 1000, failed: 1, longestGapMs: 70_000, drainMs: 80_000, cut: 2 },
  south: { served: 2000, failed: 0, longestGapMs: 60_000, drainMs: 90_000, cut: 3 }
}
type Drain = NonNullable<Awaited<ReturnType<TrafficRouter['switchTo']>>>['drain']

/** A router of a plugin of its own, whose key says where it comes among the others. */
function router(id: 'north' | 'south', key: string) {
  const called = async (call: Call): Promise<unknown> => {
    calls.push(`${id} ${call}`)
    return await within.get(`${id} ${call}`)?.()
  }
  const definition = definePlugin({
    id,
    contributes(contribute) {
      const drain: Drain = async () => {
        await called('drain')
        return proofs[id] as Awaited<ReturnType<Drain>>
      }
      contribute(trafficRouters, key, {
        async prepare() {
          const answer = await called('prepare')
          return typeof answer === 'string' ? answer : null
        },
        async switchTo() {
          await called('switchTo')
          return { drain }
        },
        async revert() {
          await called('revert')
          return { drain }
        }
      })
    }
  })
  return { manifest: { id, requires: { deployments: '^0.1.0' } }, definition }
}

let faultBeforeRecord = false
let cleanedUp = 0
const faults = definePlugin({
  id: 'faults',
  contributes(contribute) {
    contribute(rolloutHooks, 'faults', {
      at(boundary) {
        if (faultBeforeRecord && boundary === 'before record') throw new Error('no record')
        if (boundary === 'after clean-up') cleanedUp++
      }
    })
  }
})

test('several traffic routers', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab({
    inline: [
      router('south', 'z-south'),
      router('north', 'a-north'),
      { manifest: { id: 'faults', requires: { deployments: '^0.1.0' } }, definition: faults }
    ]
  })
  t.teardown(() => lab.close())
  const { k } = lab
  const web = await lab.application('web', sample('one'))
  t.match(await web.deployed(), { status: 'success' })
  const { direct_url: address } = await web.read()
  const served = async (): Promise<string> => await (await fetch(address)).text()
  const admin = await lab.k.as.session()

  /** What is done in the calls of the next deploy, and what has been called when it ended. */
  const deployed = async (version: string, done: Record<string, () => unknown> = {}, mode: Mode = 'ok') => {
    await web.push(sample(version, mode))
    within.clear()
    for (const [call, act] of Object.entries(done)) within.set(call, act)
    calls.length = 0
    return await web.deployed()
  }
  /** Of deploys alone: routers are also prepared and led back to what serves when something has to be looked up again. */
  const switches = () => calls.filter(call => call.endsWith('switchTo'))
  const revertsAfter = (last: string) =>
    calls.slice(calls.lastIndexOf(last)).filter(call => call.endsWith('revert'))

  await t.test('are switched one after the other by their keys, and drained together', async t => {
    const seen: Record<string, string> = {}
    const note = (call: string) => async () => {
      seen[call] = await served()
    }
    const ended = await deployed('two', {
      'north switchTo': note('north'),
      'south switchTo': note('south')
    })
    t.match(ended, { status: 'success' })
    t.same(seen, { north: 'one', south: 'two' }, 'direct addresses come between them')
    t.same(calls.slice(0, 2).toSorted(), ['north prepare', 'south prepare'])
    t.same(switches(), ['north switchTo', 'south switchTo'])
    t.equal(await served(), 'two')
    const told = await until(async () => {
      const { body } = await admin.get(`${web.path}/deployments/${ended.id}`)
      return body.switch_served !== null && body
    }, 'the drain is over')
    t.ok(told.switch_served >= 3000)
    t.match(told, { switch_failed: 1, switch_longest_gap_ms: 70_000, drain_ms: 90_000, switch_cut: 5 })
  })

  await t.test('are reverted in reverse when a later one fails, and the error names it', async t => {
    const seen: Record<string, string> = {}
    const note = (call: string) => async () => {
      seen[call] = await served()
    }
    const failed = await deployed('never', {
      'south switchTo': () => {
        throw new Error('no certificate')
      },
      'south revert': note('south'),
      'north revert': note('north')
    })
    t.match(failed, {
      status: 'failed',
      step: 'switch',
      error_message: /the traffic router of the plugin "south": no certificate/
    })
    t.same(switches(), ['north switchTo', 'south switchTo'])
    t.same(revertsAfter('south switchTo').slice(0, 2), ['south revert', 'north revert'])
    t.same(seen, { south: 'never', north: 'two' })
    t.equal(await served(), 'two')
  })

  await t.test(
    'are all reverted when the deploy fails after the switch, whatever one of them throws',
    async t => {
      faultBeforeRecord = true
      const failed = await deployed('never', {
        'south revert': () => {
          throw new Error('stuck')
        }
      })
      faultBeforeRecord = false
      t.match(failed, { status: 'failed', error_message: /no record/ })
      t.equal(await served(), 'two')
      t.match(await web.containers(), [{ Names: [`/${web.slug}`] }])
      t.ok(calls.includes('north revert'))
    }
  )

  await t.test('are left alone by a deploy that fails before, in a preparation too', async t => {
    const failed = await deployed('never', {
      'south prepare': () => {
        throw new Error('not today')
      }
    })
    t.match(failed, {
      status: 'failed',
      error_message: /the traffic router of the plugin "south": not today/
    })
    t.same(calls.slice(0, 2).toSorted(), ['north prepare', 'south prepare'])
    t.same(switches(), [])
    t.equal(await served(), 'two')
  })

  await t.test('may have no address for an application: the log warns of it', async t => {
    const ended = await deployed('three', { 'north prepare': () => 'No domain: it has none yet' })
    t.match(ended, { status: 'success', build_logs: /"warning".*No domain: it has none yet\./ })
    t.same(switches(), ['north switchTo', 'south switchTo'])
    t.equal(await served(), 'three')
  })

  await t.test('may be turned off in the middle of it', async t => {
    const ended = await deployed('four', {
      'north switchTo': async () => await k.disable('south')
    })
    t.match(ended, { status: 'success', build_logs: /south.* was turned off meanwhile/ })
    t.same(switches(), ['north switchTo'])
    t.equal(await served(), 'four')
    t.match(await deployed('five'), { status: 'success' })
    t.notOk(calls.some(call => call === 'south prepare' || call === 'south switchTo'))
    await k.enable('south')
  })

  await t.test('may be turned off while one of their own calls fails', async t => {
    const ended = await deployed('six', {
      'south switchTo': async () => {
        await k.disable('south')
        throw new Error('its connections are closed')
      }
    })
    t.match(ended, { status: 'success', build_logs: /south.* was turned off meanwhile/ })
    await k.enable('south')
  })

  await t.test('may be reloaded in the middle of it: the new version is asked again', async t => {
    let isReloaded = false
    const ended = await deployed('seven', {
      'south switchTo': async () => {
        if (isReloaded) return
        isReloaded = true
        await k.reload('south')
        throw new Error('its connections are closed')
      }
    })
    t.match(ended, { status: 'success' })
    t.same(switches(), ['north switchTo', 'south switchTo', 'south switchTo'])
  })

  await t.test('need not be direct addresses', async t => {
    await k.disable('direct')
    t.match(await deployed('eight'), { status: 'success' })
    t.same(switches(), ['north switchTo', 'south switchTo'])
    await k.enable('direct')
    // It may lead to the version before until that ends.
    await until(async () => (await served()) === 'eight', 'the address leads to the new version')
  })

  await t.test('that were away for the switch are told of it before the old version goes', async t => {
    const ended = await deployed('nine', {
      'north switchTo': async () => await k.disable('direct'),
      'south switchTo': async () => await k.enable('direct')
    })
    t.match(ended, { status: 'success', build_logs: /direct.* was turned off meanwhile/ })
    await until(async () => {
      const answer = await fetch(address)
      t.ok(answer.ok)
      return (await answer.text()) === 'nine'
    }, 'the address leads to the new version')
    await until(async () => (await web.containers()).length === 1, 'the old version is cleared away')
    t.equal(await served(), 'nine')
  })

  await t.test(
    'a direct address that comes back too late for that follows when the old version ends',
    async t => {
      t.match(await deployed('ignores-sigterm', {}, 'ignores-sigterm'), { status: 'success' })
      await until(async () => (await web.containers()).length === 1, 'one container is left')
      const [old] = await web.containers()
      await k.disable('direct')
      const before = cleanedUp
      t.match(await deployed('ten'), { status: 'success' })
      await until(() => cleanedUp > before, 'the old version is being stopped')
      await k.enable('direct')
      t.equal(await served(), 'ignores-sigterm')
      await engine.getContainer(old?.Id ?? '').kill()
      await until(async () => (await served()) === 'ten', 'the address leads to the new version')
    }
  )
})
