import { setTimeout as sleep } from 'node:timers/promises'
import { bounded } from 'busbar/sdk'
import { test } from 'tap'

const never = async (): Promise<never> => await new Promise<never>(() => {})
const what = 'the hook of the plugin "quota"'

test('what answers in time is waited for, and so is what fails', async t => {
  t.equal(await bounded(async () => await sleep(5, 'late'), { ms: 60_000, what }), 'late')
  t.equal(await bounded(() => 'at once', { ms: 60_000, what }), 'at once')
  await t.rejects(
    bounded(
      () => {
        throw new Error('no quota')
      },
      { ms: 60_000, what }
    ),
    { message: 'no quota' }
  )
})

test('what never answers is given up when its time is over, and named', async t => {
  await t.rejects(bounded(never, { ms: 20, what }), {
    message: 'the hook of the plugin "quota" did not answer within 0.02 s'
  })
})

test('what never answers is given up at an abort, with its reason; after one nothing is begun', async t => {
  const abort = new AbortController()
  const waiting = bounded(never, { ms: 60_000, signal: abort.signal, what })
  abort.abort(new Error('cancelled'))
  await t.rejects(waiting, { message: 'cancelled' })
  let isBegun = false
  const late = bounded(
    () => {
      isBegun = true
    },
    { ms: 60_000, signal: abort.signal, what }
  )
  await t.rejects(late, { message: 'cancelled' })
  t.notOk(isBegun)
})
