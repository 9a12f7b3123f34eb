import { test } from 'tap'
import { Shutdown } from '../../core/shutdown.js'

test(
  'a part that hangs or fails is named and left behind, and the others are stopped, the last that came first',
  {
    timeout: 30_000
  },
  async t => {
    const shutdown = new Shutdown(100)
    const stopped: string[] = []
    const note = (name: string) => (): void => {
      stopped.push(name)
    }
    shutdown.add('the first', note('the first'))
    shutdown.add('one that hangs', async () => await new Promise(() => {}))
    shutdown.add('one between', note('one between'))
    shutdown.add('one that fails', () => {
      throw new Error('it fails')
    })
    shutdown.add('the last', note('the last'))
    const named: unknown[] = []
    const log = { error: (details: { part: string }) => named.push(details.part) }
    // Nothing else keeps a process of this test alone alive until the time is over.
    const alive = setInterval(() => {}, 1_000)
    t.teardown(() => {
      clearInterval(alive)
    })
    await Promise.all([shutdown.run(log as never), shutdown.run(log as never)])
    t.same(stopped, ['the last', 'one between', 'the first'], 'each once')
    t.same(named, ['one that fails', 'one that hangs'])
  }
)

test('a part gets the time that is left, not only a moment', async t => {
  const shutdown = new Shutdown(20_000)
  let hasEnded = false
  shutdown.add('a slow one', async () => {
    await new Promise(resolve => setTimeout(resolve, 1_300))
    hasEnded = true
  })
  const named: unknown[] = []
  await shutdown.run({ error: (details: { part: string }) => named.push(details.part) } as never)
  t.ok(hasEnded)
  t.same(named, [])
})

test('a part gets a moment even when no time is left', async t => {
  const shutdown = new Shutdown(0)
  const named: unknown[] = []
  let hasEnded = false
  shutdown.add('one that needs a moment', async () => {
    await new Promise(resolve => setTimeout(resolve, 50))
    hasEnded = true
  })
  await shutdown.run({ error: (details: { part: string }) => named.push(details.part) } as never)
  t.ok(hasEnded)
  t.same(named, [])
})
