import { setTimeout as sleep } from 'node:timers/promises'
import { Turns } from 'busbar/sdk'
import { test } from 'tap'

/** Longer than a turn. */
const workMs = 11

function work(ms = workMs): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** Loops that always have something to do, until `stop`; each is noted when it goes on after a pass. */
function busyLoops(count: number, note: () => void, owner?: string) {
  let isOver = false
  const loops = Array.from({ length: count }, async () => {
    const turns = new Turns(owner)
    while (!isOver) {
      work()
      if (!turns.isOver) continue
      await turns.pass()
      note()
    }
  })
  return {
    async stop(): Promise<void> {
      isOver = true
      await Promise.all(loops)
    }
  }
}

/** How many turns others had while `own` waited for each of its, the first few aside. */
async function turnsBetween(
  rounds: number,
  own: Turns,
  others: () => number,
  before: () => unknown = work
): Promise<number[]> {
  const counts: number[] = []
  for (let n = 0; n < rounds; n++) {
    await before()
    const startedAt = others()
    await own.pass()
    counts.push(others() - startedAt)
  }
  return counts.slice(2)
}

test('many loops of one owner have as many turns as one loop of another', async t => {
  let others = 0
  const busy = busyLoops(50, () => others++, 'many')
  const counts = await turnsBetween(8, new Turns('one'), () => others)
  await busy.stop()
  t.ok(Math.max(...counts) <= 2, `${counts.join(' ')} turns of others before each`)
})

test('the loops of one owner take turns', async t => {
  const order: number[] = []
  await Promise.all(
    [1, 2, 3].map(async loop => {
      const turns = new Turns('one')
      for (let n = 0; n < 3; n++) {
        await turns.pass()
        order.push(loop)
        work()
      }
    })
  )
  t.same(order, [1, 2, 3, 1, 2, 3, 1, 2, 3])
})

test('a loop that has only waited goes before those that have used their turns up', async t => {
  let others = 0
  const busy = busyLoops(50, () => others++)
  const counts = await turnsBetween(
    8,
    new Turns(),
    () => others,
    async () => await sleep(20)
  )
  await busy.stop()
  t.ok(Math.max(...counts) <= 2, `${counts.join(' ')} turns of others before each`)
})

test('loops that have only waited do not keep one waiting that has used its turn up', async t => {
  let others = 0
  let isOver = false
  const waking = Array.from({ length: 50 }, async () => {
    const turns = new Turns()
    while (!isOver) {
      await sleep(1)
      await turns.pass()
      others++
    }
  })
  await sleep(50)
  const counts = await turnsBetween(20, new Turns(), () => others)
  isOver = true
  await Promise.all(waking)
  // Now and then one is quick to wake up, and counts as one that has used its turn up.
  t.ok(Math.max(...counts) <= 5, `${counts.join(' ')} turns of others before each`)
})
