import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyPlugin, definePlugin, healthChecks, kernel } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { Health } from '../../core/http/health.js'

/** A plugin that counts how often it is asked how it is. */
function counting() {
  const asked = { times: 0 }
  const definition = definePlugin({
    id: 'counting',
    start: () => ({}),
    contributes(contribute) {
      contribute(healthChecks, 'counting', {
        check: async () => {
          asked.times++
          await sleep(50)
          return 'ok'
        }
      })
    }
  }) as AnyPlugin
  return { asked, plugin: { manifest: { id: 'counting' }, definition } }
}

test('four hundred who ask at once share one check, and all hear that the platform is well', async t => {
  const { asked, plugin } = counting()
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()
  asked.times = 0
  const startedAt = performance.now()
  const answers = await Promise.all(Array.from({ length: 400 }, async () => await anyone.get('/healthz')))
  const seconds = Math.ceil((performance.now() - startedAt) / 1000)
  t.same([...new Set(answers.map(({ status }) => status))], [200])
  t.match(answers[0]?.body, { healthy: true, checks: { database: 'ok', keyring: 'ok', counting: 'ok' } })
  t.ok(asked.times <= seconds, `${asked.times} checks in ${seconds} s`)
})

test('a result is shared for a second and no longer, a failure too', async t => {
  let runs = 0
  const health = new Health({
    vital: {
      database: async () => {
        if (++runs === 1) throw new Error('away')
        return 'ok'
      }
    },
    contributed: { get: () => undefined, keys: () => [], entries: () => [] },
    clean: text => text
  })
  const [one, two] = await Promise.all([health.report(), health.report()])
  t.same(one, { healthy: false, checks: { database: 'unhealthy: away' } })
  t.equal(one, two)
  for (const end = performance.now() + 5_000; !(await health.report()).healthy && performance.now() < end; )
    await sleep(20)
  t.same(await health.report(), { healthy: true, checks: { database: 'ok' } })
  t.equal(runs, 2)
})

test('what plugins report is cleaned of secrets, short, and takes no name of the kernel', async t => {
  const secret = 'hunter2secretvalue'
  const answers: Record<string, () => unknown> = {
    search: () => {
      throw new Error(`the search server answered: ${secret} ${'x'.repeat(1e6)}`)
    },
    [`by ${secret}`]: () => 'ok',
    halved: () => `${'y'.repeat(4_090)}${secret}`,
    long: () => 'z'.repeat(30e6),
    database: () => 'ok but mine',
    'uncaught errors': () => 'none at all',
    object: () => ({ toString: () => 'ok' }),
    nothing: () => undefined,
    ['n'.repeat(10_000)]: () => 'ok'
  }
  const definition = definePlugin({
    id: 'telling',
    needs: { secrets: kernel.secrets },
    start: ({ use }) => {
      use.secrets.redact([secret])
      return {}
    },
    contributes(contribute) {
      for (const [name, answer] of Object.entries(answers))
        contribute(healthChecks, name, { check: async () => answer() as string })
    }
  }) as AnyPlugin
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'telling', grants: ['secrets'] }, definition }]
  })
  t.teardown(() => k.close())
  const { body } = await k.as.anonymous().get('/healthz')
  const text = JSON.stringify(body)
  t.notMatch(text, secret)
  t.notMatch(text, 'hunter')
  t.ok(text.length < 4_000, `${text.length} characters`)
  t.match(body.checks, {
    search: /^unhealthy: the search server answered: \[REDACTED\] x+ … \(cut\)$/,
    'by [REDACTED]': 'ok',
    long: /^z+ … \(cut\)$/,
    database: 'ok',
    'database (telling)': 'ok but mine',
    'uncaught errors (telling)': 'none at all',
    object: 'unhealthy: the health check of the plugin "telling" answered an object instead of a text',
    nothing: 'unhealthy: the health check of the plugin "telling" answered undefined instead of a text'
  })
})

test('a platform whose database is gone says so with 503, and what of it is well', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  await k.state.database.drop()
  const ask = async () => await k.as.anonymous().get('/healthz')
  await until(async () => (await ask()).status !== 200, 'the platform notices')
  t.match(await ask(), {
    status: 503,
    body: { healthy: false, checks: { database: /^unhealthy: /, keyring: 'ok' } }
  })
})
