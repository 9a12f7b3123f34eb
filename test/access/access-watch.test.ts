import type { SignedInCaller } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { AccessWatch } from '../../core/access/access-watch.js'

const callerNamed = (id: string): SignedInCaller => ({
  kind: 'session',
  sessionId: id,
  user: { id, email: `${id}@example.com`, username: id, role: 'member' }
})

async function turnsOfTheLoop(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve))
}

test('what is open is asked for again after a change of its project, its user or everything, and of nothing else', async t => {
  const watch = new AccessWatch()
  const looked: string[] = []
  const open = (user: string, project: string): (() => void) =>
    watch.watch(callerNamed(user), project, () => {
      looked.push(`${user} in ${project}`)
    })
  const stop = open('ann', 'p')
  open('bob', 'p')
  open('bob', 'q')
  watch.after({ kind: 'project', id: 'q' })
  t.same(looked, [], 'the change itself waits for none')
  await until(() => looked.length > 0, 'it is asked')
  await turnsOfTheLoop()
  t.same(looked.splice(0), ['bob in q'])
  watch.after({ kind: 'user', id: 'ann' })
  await turnsOfTheLoop()
  t.same(looked.splice(0), ['ann in p'])
  stop()
  watch.after({ kind: 'all' })
  await turnsOfTheLoop()
  t.same(looked.splice(0), ['bob in p', 'bob in q'], 'one that has ended is not asked for')
})

test('the event loop turns between those that take long, and changes meanwhile make one further round', async t => {
  const watch = new AccessWatch()
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
  const lookedAt: number[] = []
  for (let n = 0; n < 5; n++)
    watch.watch(callerNamed('ann'), 'p', () => {
      lookedAt.push(turns)
      // Longer than a turn may be.
      for (const end = performance.now() + 12; performance.now() < end; );
    })
  watch.after({ kind: 'project', id: 'p' })
  await until(() => lookedAt.length > 0, 'it has begun')
  for (let n = 0; n < 50; n++) watch.after({ kind: 'project', id: 'p' })
  await until(() => lookedAt.length === 10, 'all are asked for once more')
  await turnsOfTheLoop()
  t.equal(lookedAt.length, 10, 'and not again')
  t.equal(new Set(lookedAt).size, 10, 'each in another turn')
})

test('a project in which nothing is open any more is forgotten, and only once', async t => {
  const watch = new AccessWatch()
  const looked: string[] = []
  const open = (name: string): (() => void) => watch.watch(callerNamed('ann'), 'p', () => looked.push(name))
  const [first, second] = [open('first'), open('second')]
  t.equal(watch.projects, 1)
  first()
  t.equal(watch.projects, 1)
  second()
  t.equal(watch.projects, 0)
  // Neither a change of it, nor one that ended before its turn came, is an error.
  watch.after({ kind: 'project', id: 'p' })
  await turnsOfTheLoop()
  t.same(looked, [])
  const third = open('third')
  second()
  watch.after({ kind: 'project', id: 'p' })
  await turnsOfTheLoop()
  t.same(looked, ['third'], 'the end of what was open before takes nothing else along')
  third()
  t.equal(watch.projects, 0)
})
