import { test } from 'tap'
import { keyOf } from '../../core/changes/access-change.js'
import { AccessRounds } from '../../core/changes/access-rounds.js'
import { pause, untilAborted, whenLate, withDeadline, withGraceAfterAbort } from '../../core/clock/waits.js'

const never = new Promise<never>(() => {})

test('work that goes on after its grace is given up with the reason of the abort', async t => {
  const controller = new AbortController()
  const waiting = withGraceAfterAbort(never, controller.signal, 5)
  controller.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  await t.rejects(withGraceAfterAbort(never, controller.signal, 5), { message: 'enough' }, 'aborted before')
  t.equal(await withGraceAfterAbort(Promise.resolve(1), controller.signal, 5), 1, 'work that ends is not')
  const late = new Promise(resolve => setTimeout(resolve, 5, 'in the grace'))
  t.equal(await withGraceAfterAbort(late, controller.signal, 10_000), 'in the grace')
})

test('a deadline rejects with what took too long, and an act comes when work is late', async t => {
  await t.rejects(withDeadline(never, 5, 'the look-up'), { message: 'the look-up took longer than 0.005 s' })
  t.equal(await withDeadline(1, 5, 'a value'), 1)
  let acts = 0
  await whenLate(new Promise(resolve => setTimeout(resolve, 20)), 1, () => acts++)
  t.equal(acts, 1)
  await whenLate(Promise.resolve(), 10_000, () => acts++)
  t.equal(acts, 1)
})

test('a pause ends with its signal, and so does a wait for the abort', async t => {
  const controller = new AbortController()
  const waits = [pause(60_000, controller.signal), untilAborted(controller.signal)]
  controller.abort()
  await Promise.all(waits)
  await untilAborted(controller.signal)
  t.pass('none rejects')
})

test('changes of one thing while a round about it is under way make one further round', async t => {
  const rounds: string[] = []
  let during: (() => void) | undefined
  const all = new AccessRounds(async change => {
    rounds.push(keyOf(change))
    during?.()
    during = undefined
  })
  const project = { kind: 'project', id: 'p' } as const
  during = () => {
    for (let n = 0; n < 3; n++) all.after(project)
    all.after({ kind: 'all' })
  }
  all.after(project)
  all.after(project)
  t.same(rounds, [], 'who makes the change does not wait')
  for (let n = 0; n < 40; n++) await new Promise(resolve => setImmediate(resolve))
  t.same(rounds.sort(), ['all', 'project:p', 'project:p'])
})
