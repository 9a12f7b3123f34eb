import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { RelaySender } from '../../core/bus/relay-sender.js'

const log = { warn: () => {} } as unknown as Log

/** The database's end: each statement is under way until it is answered. */
class Statements {
  readonly sent: (readonly string[])[] = []
  readonly #answers: Array<(error?: Error) => void> = []

  readonly signal = async (frames: readonly string[]): Promise<void> => {
    this.sent.push(frames)
    await new Promise<void>((resolve, reject) => {
      this.#answers.push(error => {
        if (error === undefined) resolve()
        else reject(error)
      })
    })
  }

  async answer(error?: Error): Promise<void> {
    const answer = await until(() => this.#answers.shift(), 'a statement')
    answer(error)
  }

  /** Answers whatever comes until `work` has resolved. */
  async answerUntil(work: Promise<unknown>): Promise<void> {
    let isOver = false
    const over = work.finally(() => {
      isOver = true
    })
    while (!isOver) {
      this.#answers.shift()?.()
      await turn()
    }
    await over
  }

  get numbers(): number[] {
    return this.sent.flat().flatMap(frame => {
      const { messages } = JSON.parse(frame) as { messages: ReadonlyArray<[string, string, { n: number }]> }
      return messages.map(([, , { n }]) => n)
    })
  }
}

const turn = async (): Promise<void> => {
  for (let n = 0; n < 5; n++) await new Promise(resolve => setImmediate(resolve))
}
/** Of about 1 KiB: seven of them are a frame. */
const message = (n: number): string => JSON.stringify({ n, text: 'x'.repeat(1000) })

test('what waits leaves in up to 64 frames at once, in the order in which it was sent', async t => {
  const statements = new Statements()
  const sender = new RelaySender('a', statements.signal, log)
  for (let n = 0; n < 1000; n++) sender.send('c', 'e', message(n))
  await statements.answerUntil(sender.idle())
  t.same(
    statements.sent.map(frames => frames.length),
    [64, 64, 15]
  )
  t.same(
    statements.numbers,
    Array.from({ length: 1000 }, (_, n) => n)
  )
})

test('no two frames of one statement are equal, as PostgreSQL would deliver one of them', async t => {
  const statements = new Statements()
  const sender = new RelaySender('a', statements.signal, log)
  for (let n = 0; n < 70; n++) sender.send('c', 'e', message(0))
  sender.send('c', 'e', `"${'x'.repeat(7300)}"`)
  sender.send('c', 'e', `"${'x'.repeat(7300)}"`)
  // These may be equal, and so they do not leave together.
  for (const kind of ['more', 'less', 'more']) sender.say(`{"kind":"${kind}","from":"a"}`)
  await statements.answerUntil(sender.idle())
  for (const frames of statements.sent) t.equal(new Set(frames).size, frames.length)
  t.same(
    statements.sent.map(frames => frames.length),
    [12, 1, 1, 1]
  )
})

test('a publisher that waits for room goes on when little waits, one after the other, and all arrives', async t => {
  const statements = new Statements()
  const sender = new RelaySender('a', statements.signal, log)
  const order: string[] = []
  const publish = async (name: string): Promise<void> => {
    await sender.room()
    order.push(name)
    // Together they are more than may wait.
    for (let n = 0; n < 1500; n++) sender.send('c', 'e', message(n))
  }
  await publish('first')
  const waiting = ['second', 'third', 'fourth', 'fifth'].map(async name => await publish(name))
  await turn()
  t.same(order, ['first'], 'the others wait')
  await statements.answerUntil(Promise.all(waiting))
  t.same(order, ['first', 'second', 'third', 'fourth', 'fifth'])
  await statements.answerUntil(sender.idle())
  t.equal(sender.lost, 0)
  t.same(
    statements.numbers,
    Array.from({ length: 7500 }, (_, n) => n % 1500)
  )
})

test('who waits for room goes on when the database is away, and when nobody waits any more', async t => {
  const statements = new Statements()
  const sender = new RelaySender('a', statements.signal, log)
  await sender.room()
  for (let n = 0; n < 1500; n++) sender.send('c', 'e', message(n))
  let hasRoom = false
  void sender.room().then(() => {
    hasRoom = true
  })
  await turn()
  t.notOk(hasRoom)
  while (!hasRoom) {
    await statements.answer(new Error('away'))
    await turn()
  }
  const lost = sender.lost
  t.ok(lost > 0 && lost < 1500, 'what was under way is lost')
  for (let n = 0; n < 2000; n++) sender.send('c', 'e', message(n))
  let isClosed = false
  const closing = (async () => {
    await sender.room()
    isClosed = true
  })()
  await turn()
  t.notOk(isClosed)
  const closed = sender.close()
  await closing
  await sender.room()
  await statements.answerUntil(closed)
  t.equal(sender.lost, lost, 'what waits at the end has left')
})

test('messages that are too many, or meet an outage, are counted once each', async t => {
  const statements = new Statements()
  const sender = new RelaySender('a', statements.signal, log)
  for (let n = 0; n < 5; n++) sender.send('c', 'e', `"${'x'.repeat(1024 * 1024)}"`)
  const dropped = sender.lost
  t.equal(dropped, 2, 'three of them are 4 MiB in pieces')
  // 584 pieces.
  for (let n = 0; n < 9; n++) await statements.answer(new Error('away'))
  await statements.answerUntil(sender.idle())
  t.equal(sender.lost, dropped + 3)
  sender.say('{"kind":"alive","from":"a"}')
  await statements.answer(new Error('away'))
  await sender.idle()
  t.equal(sender.lost, dropped + 3, 'who says nothing to subscribers loses nothing of theirs')
})

test('in a flood it is told once that messages were lost, and once more at its end', async t => {
  const statements = new Statements()
  const gaps: boolean[] = []
  const sender = new RelaySender('a', statements.signal, log, hasLostControl => {
    gaps.push(hasLostControl)
    sender.say('{"kind":"gap","from":"a"}')
  })
  const overflow = (): void => {
    for (let n = 0; n < 6000; n++) sender.send('c', 'e', message(n))
  }
  overflow()
  for (let round = 0; round < 20; round++) {
    await statements.answer()
    await turn()
    overflow()
  }
  t.same(gaps, [false], 'not at each statement')
  await statements.answerUntil(sender.idle())
  t.same(gaps, [false, false])
  sender.send('c', 'e', '1')
  await statements.answerUntil(sender.idle())
  t.same(gaps, [false, false], 'nothing was lost since')
})

test('what was said between processes and did not leave is known when something leaves again', async t => {
  const statements = new Statements()
  const gaps: boolean[] = []
  const sender = new RelaySender('a', statements.signal, log, hasLostControl => {
    gaps.push(hasLostControl)
  })
  sender.say('{"kind":"more","from":"a","channels":["c"]}')
  await statements.answer(new Error('down'))
  await sender.idle()
  t.same(gaps, [])
  sender.send('c', 'e', '1')
  await statements.answerUntil(sender.idle())
  t.same(gaps, [true])
})
