import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { runSingleton, Singletons } from '../../core/jobs/singleton.js'
import { another, freshPostgres, log } from '../database/database-kit.js'

const untilAborted = async (signal: AbortSignal): Promise<void> => {
  await once(signal, 'abort')
}

test('of several processes, and of several starts in one, exactly one does the work; the next takes over when it stops', async t => {
  const postgres = await freshPostgres(t)
  const other = await another(t, postgres)
  let running = 0
  let most = 0
  const begun: number[] = []
  const starts = [postgres, postgres, other, other].map((one, n) => {
    const stop = new AbortController()
    const ended = runSingleton({
      postgres: one,
      name: 'shop.clock',
      log,
      signal: stop.signal,
      run: async signal => {
        most = Math.max(most, ++running)
        begun.push(n)
        await untilAborted(signal)
        running--
      }
    })
    return { stop, ended }
  })
  for (let count = 1; count <= 4; count++) {
    t.ok(await until(() => begun.length === count, `${count} have begun`))
    starts[begun[count - 1] ?? 0]?.stop.abort()
    await starts[begun[count - 1] ?? 0]?.ended
  }
  t.equal(most, 1)
  t.same([...begun].sort(), [0, 1, 2, 3])
})

test('work that throws begins again after a pause', async t => {
  const singletons = new Singletons(await freshPostgres(t))
  singletons.begin()
  let runs = 0
  void singletons.run({
    name: 'shop.clock',
    log,
    signal: new AbortController().signal,
    run: async signal => {
      if (++runs < 2) throw new Error('broken')
      await untilAborted(signal)
    }
  })
  await until(() => runs === 1, 'it runs')
  await sleep(300)
  t.equal(runs, 1, 'not at once')
  t.ok(await until(() => runs === 2, 'it runs again'))
  await singletons.close()
})

test('work that loses its lock is told to stop and begins again only when it has ended', async t => {
  const postgres = await freshPostgres(t)
  const stop = new AbortController()
  let running = 0
  let runs = 0
  const ended = runSingleton({
    postgres,
    name: 'shop.clock',
    log,
    signal: stop.signal,
    run: async signal => {
      t.equal(++running, 1)
      runs++
      await untilAborted(signal)
      await sleep(300)
      running--
    }
  })
  await until(() => runs === 1, 'it runs')
  await (await another(t, postgres)).query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'busbar session' and datname = current_database()"
  )
  t.ok(await until(() => runs === 2, 'it runs again'))
  stop.abort()
  await ended
})

/** Advisory locks that somebody has in this database: the server has others. */
const heldHere = `select from pg_locks where locktype = 'advisory' and granted
  and database = (select oid from pg_database where datname = current_database())`

test('a plugin that has taken the lock of a singleton is ended and named, and the singleton runs', async t => {
  const ended: Array<readonly [string, string]> = []
  const postgres = await freshPostgres(t, undefined, { onEnded: (...args) => ended.push(args) })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await postgres.session.connected()
  const taken = "select pg_advisory_lock(hashtextextended('singleton shop.clock', 0))"
  const holding = bad.transaction(async tx => {
    await bad.query(taken, [], tx)
    await bad.query('select pg_sleep(60)', [], tx)
  })
  holding.catch(() => {})
  await until(async () => (await postgres.query(heldHere)).length > 0, 'it has the lock')
  const singletons = new Singletons(postgres)
  singletons.begin()
  let runs = 0
  const run = async (signal: AbortSignal): Promise<void> => {
    runs++
    await untilAborted(signal)
  }
  void singletons.run({ name: 'shop.clock', log, signal: new AbortController().signal, run })
  await until(() => runs === 1, 'it runs')
  const reason =
    'its connection to the database was ended, as it had the lock "singleton shop.clock", which is the platform\'s: take advisory locks by keys of your own'
  await t.rejects(holding, { message: reason })
  t.same(ended, [['bad', reason]])
  await singletons.close()
})
