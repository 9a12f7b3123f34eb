import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type Listener, openListener } from '../../core/database/listener.js'
import type { Postgres } from '../../core/database/postgres.js'
import { another, freshPostgres, log } from './database-kit.js'

/** What arrives on a topic, and a way to wait for it. */
function collect(
  listener: Listener,
  topic: string
): { received: string[]; until(count: number): Promise<string[]> } {
  const received: string[] = []
  const arrivals = new EventEmitter()
  listener.onSignal(topic, data => {
    received.push(data)
    arrivals.emit('one')
  })
  return {
    received,
    until: async count => {
      while (received.length < count) await once(arrivals, 'one', { signal: AbortSignal.timeout(10_000) })
      return received
    }
  }
}

const breakSession = async (postgres: Postgres): Promise<void> => {
  await postgres.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'busbar session'"
  )
}

test('a signal reaches this process at once and once, and the other processes in order', async t => {
  const postgres = await freshPostgres(t)
  const here = await openListener({ postgres, log })
  const there = await openListener({ postgres: await another(t, postgres), log })
  const atHome = collect(here, 'changed')
  const away = collect(there, 'changed')
  const unrelated = collect(there, 'other')
  const sent = here.signal('changed', 'a b\nc')
  t.same(atHome.received, ['a b\nc'], 'before it is sent')
  await sent
  for (let n = 0; n < 50; n++) await here.signal('changed', String(n))
  t.same(await away.until(51), ['a b\nc', ...Array.from({ length: 50 }, (_, n) => String(n))])
  await there.signal('changed', 'back')
  await atHome.until(52)
  t.equal(atHome.received.filter(data => data === '0').length, 1, 'its own signals are not delivered again')
  t.same(unrelated.received, [])
})

test('a signal in a transaction is delivered everywhere when it has committed, and never when it has not', async t => {
  const postgres = await freshPostgres(t)
  const here = await openListener({ postgres, log })
  const there = await openListener({ postgres: await another(t, postgres), log })
  const atHome = collect(here, 'row')
  const away = collect(there, 'row')
  await t.rejects(
    postgres.transaction(async tx => {
      await here.signal('row', 'never', tx)
      throw new Error('rolled back')
    })
  )
  await postgres.transaction(async tx => {
    await here.signal('row', 'committed', tx)
    await sleep(50)
    t.same([atHome.received, away.received], [[], []], 'not before the commit')
  })
  t.same([await atHome.until(1), await away.until(1)], [['committed'], ['committed']])
})

test('a signal too long for NOTIFY, or on a topic with white space, is refused', async t => {
  const listener = await openListener({ postgres: await freshPostgres(t), log })
  await t.rejects(listener.signal('long', 'é'.repeat(4000)), {
    message: /a signal on long is 80\d\d bytes long and may be 7999/
  })
  await t.rejects(listener.signal('two words', ''), { message: /white space/ })
  await listener.signal('long', 'x'.repeat(7900))
})

test('a lost connection is made again: signals arrive again and whoever asked is told', async t => {
  const postgres = await freshPostgres(t)
  const here = await openListener({ postgres, log })
  const other = await another(t, postgres)
  const there = await openListener({ postgres: other, log })
  const away = collect(there, 'topic')
  const reconnects = new EventEmitter()
  there.onReconnect(() => {
    reconnects.emit('one')
  })
  const told = once(reconnects, 'one', { signal: AbortSignal.timeout(10_000) })
  await breakSession(postgres)
  await told
  await until(async () => {
    await here.signal('topic', 'again').catch(() => {})
    return away.received.length > 0
  }, 'a signal arrives')
  t.equal(away.received[0], 'again')
})

test('a listener that throws or has been removed does not disturb the others', async t => {
  const listener = await openListener({ postgres: await freshPostgres(t), log })
  listener.onSignal('x', () => {
    throw new Error('broken')
  })
  const stop = listener.onSignal('x', () => {
    t.fail('removed')
  })
  const { received } = collect(listener, 'x')
  stop()
  await listener.signal('x', 'data')
  t.same(received, ['data'])
})

test('a lock of the session is held by one holder at a time and freed when its connection ends', async t => {
  const { session, ...postgres } = await freshPostgres(t)
  const one = await session.tryLock('name')
  t.ok(one)
  t.notOk(await session.tryLock('name'), 'not twice in one process')
  const other = await another(t, { ...postgres, session } as Postgres)
  t.notOk(await other.session.tryLock('name'))
  await one?.release()
  const held = await other.session.tryLock('name')
  t.ok(held)
  await other.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'busbar session'"
  )
  if (held?.lost.aborted === false) await once(held.lost, 'abort', { signal: AbortSignal.timeout(5000) })
  t.ok(held?.lost.aborted)
  t.ok(await until(async () => await session.tryLock('name').catch(() => undefined), 'it is free again'))
})
