import { AsyncLocalStorage } from 'node:async_hooks'
import type { ContainerEvent } from 'busbar/api/containers'
import { test } from 'tap'
import { maxWaiting, type ReadEvent, type Reading } from '../events/engine-events.js'
import { SharedEvents } from '../events/shared-events.js'

const outage = { lostAt: new Date(0), backAt: new Date(1000) }

/** Streams of an engine that say what a test makes them say. */
class Engine {
  readonly opened: Array<{ readonly reading: Reading; readonly signal: AbortSignal }> = []
  #waiting: ReadEvent[] = []
  #wake = (): void => {}
  #failure: Error | undefined
  readonly events = new SharedEvents((reading, signal) => this.#open(reading, signal))

  say(event: ContainerEvent): void {
    const { reading } = this.#last()
    if (event.kind === 'resync') reading.isOpen = true
    this.#waiting.push({ event, number: ++reading.count })
    this.#wake()
  }

  goAway(): void {
    this.#last().reading.isOpen = false
  }

  fail(error: Error): void {
    this.#failure = error
    this.#wake()
  }

  #last() {
    const last = this.opened.at(-1)
    if (last === undefined) throw new Error('nobody follows')
    return last
  }

  async *#open(reading: Reading, signal: AbortSignal): AsyncGenerator<ReadEvent> {
    this.opened.push({ reading, signal })
    signal.addEventListener('abort', () => this.#wake())
    while (!signal.aborted) {
      const batch = this.#waiting
      this.#waiting = []
      yield* batch
      const failure = this.#failure
      this.#failure = undefined
      if (failure !== undefined) throw failure
      if (this.#waiting.length === 0 && !signal.aborted)
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
    }
  }
}

const died = (containerId: string): ContainerEvent => ({
  kind: 'container',
  action: 'die',
  containerId,
  owner: {},
  exitCode: 1
})
const resync: ContainerEvent = { kind: 'resync' }

/** Follows until told to end; what came so far. */
function follow(events: SharedEvents) {
  const ending = new AbortController()
  const got: ContainerEvent[] = []
  const ended = (async () => {
    for await (const event of events.follow(ending.signal)) got.push(event)
  })()
  return {
    got,
    ended,
    end: async () => {
      ending.abort()
      await ended
    }
  }
}

const turn = async (): Promise<void> => await new Promise(resolve => setImmediate(resolve))

test('all who follow the engine share one stream of it, and each gets every event', async t => {
  const engine = new Engine()
  const followers = [follow(engine.events), follow(engine.events), follow(engine.events)]
  engine.say(resync)
  engine.say(died('a'))
  await turn()
  for (const { got } of followers) t.same(got, [resync, died('a')])
  t.equal(engine.opened.length, 1)
  await Promise.all(followers.map(async follower => await follower.end()))
  t.equal(engine.opened[0]?.signal.aborted, true, 'with the last of them it ends')
})

test('who comes later is told to look at once, and gets nothing that is older', async t => {
  const engine = new Engine()
  const first = follow(engine.events)
  engine.say(resync)
  await turn()
  engine.say(died('old'))
  const second = follow(engine.events)
  engine.say(died('new'))
  await turn()
  t.same(first.got, [resync, died('old'), died('new')])
  t.same(second.got, [resync, died('new')])
  await Promise.all([first.end(), second.end()])
})

test('who comes while the engine is away looks when it is back, and hears of no outage', async t => {
  const engine = new Engine()
  const first = follow(engine.events)
  engine.say(resync)
  await turn()
  engine.goAway()
  const second = follow(engine.events)
  await turn()
  t.same(second.got, [])
  engine.say({ kind: 'resync', outage })
  await turn()
  t.same(first.got, [resync, { kind: 'resync', outage }])
  t.same(second.got, [resync])
  engine.say({ kind: 'resync', outage })
  await turn()
  t.same(second.got.at(-1), { kind: 'resync', outage }, 'the next one is news')
  await Promise.all([first.end(), second.end()])
})

test('one who does not read keeps nobody waiting, and looks again when too much has come', async t => {
  const engine = new Engine()
  const first = follow(engine.events)
  const ending = new AbortController()
  const slow = engine.events.follow(ending.signal)
  engine.say(resync)
  t.same((await slow.next()).value, resync)
  for (let i = 0; i < maxWaiting + 1; i++) engine.say(died(`c${i}`))
  await turn()
  t.equal(first.got.length, 1 + maxWaiting + 1)
  t.same((await slow.next()).value, resync)
  ending.abort()
  t.equal((await slow.next()).done, true)
  await first.end()
})

test('when all have gone and one comes again, a new stream is opened', async t => {
  const engine = new Engine()
  const first = follow(engine.events)
  engine.say(resync)
  await turn()
  await first.end()
  const second = follow(engine.events)
  t.equal(engine.opened.length, 2)
  engine.say(resync)
  await turn()
  t.same(second.got, [resync])
  await second.end()
})

test('what breaks the stream is told to all, and who follows again gets another one', async t => {
  const engine = new Engine()
  const followers = [follow(engine.events), follow(engine.events)]
  engine.fail(new Error('a defect'))
  for (const { ended } of followers) await t.rejects(ended, { message: 'a defect' })
  const again = follow(engine.events)
  engine.say(resync)
  await turn()
  t.same(again.got, [resync])
  await again.end()
})

test('the stream does not run in the name of who came first', async t => {
  const names = new AsyncLocalStorage<string>()
  let seen: string | undefined = 'not opened'
  const events = new SharedEvents(async function* () {
    seen = names.getStore()
    yield { event: resync, number: 1 }
  })
  await names.run('a plugin', async () => await events.follow(new AbortController().signal).next())
  t.equal(seen, undefined)
})
