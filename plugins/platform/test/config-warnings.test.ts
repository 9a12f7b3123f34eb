import { configChecks, definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel, testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'

async function platform(t: Test, options: Parameters<typeof createTestKernel>[0] = {}): Promise<TestKernel> {
  const k = await createTestKernel(options)
  t.teardown(async () => await k.close())
  return k
}
interface Warning {
  readonly code: string
  readonly message: string
  readonly remedy: string
}
const warningsOf = async (k: TestKernel): Promise<Warning[]> =>
  (await (await k.as.session()).get('/api/stats')).body.config_warnings
const codesOf = async (k: TestKernel): Promise<string[]> => (await warningsOf(k)).map(({ code }) => code)
const away = { DOCKER_HOST: 'unix:///nowhere/docker.sock' }

test('what is wrong with the settings of the platform is told to admins, with what helps', async t => {
  const k = await platform(t, {
    environment: { ...away, TRUST_PROXY: '0.0.0.0/0', ENCRYPTION_KEY: '0'.repeat(64) }
  })
  const warnings = await warningsOf(k)
  for (const code of ['no_public_url', 'trusts_every_proxy', 'mail_off', 'engine_unreachable'])
    t.match(
      warnings.find(warning => warning.code === code),
      { message: /\w/, remedy: /\w/ },
      code
    )
  t.match(
    warnings.find(({ code }) => code === 'engine_unreachable'),
    { remedy: /start dockerd/ }
  )
  t.same((await (await k.as.session('member')).get('/api/stats')).body.config_warnings, [])
})

test('a platform as it is installed on a machine of its own is warned of little', async t => {
  if (!(await requireEngine(t))) return
  const k = await platform(t, { environment: { SMTP_HOST: '127.0.0.1', SMTP_FROM_EMAIL: 'a@example.com' } })
  const machine =
    /^(?:memory_low|swap_missing|swap_low|disk_low|engine_disk_low|cgroup_limits_missing|slow_storage_driver)$/
  t.same(
    (await codesOf(k)).filter(code => !machine.test(code)),
    ['no_recovery_key', 'no_platform_backup'],
    'of nothing but that it is not backed up yet'
  )
})

test('a clock that is wrong is found by that of the database, and by what was written before', async t => {
  const clock = testClock(new Date(Date.now() + 3_600_000))
  const k = await platform(t, { clock, environment: away })
  const [ahead] = (await warningsOf(k)).filter(({ code }) => code === 'database_clock')
  t.match(ahead, { message: /differ by 3[56]\d\d s/, remedy: /time server/ })
  t.equal((await (await k.as.session()).post('/api/projects', { name: 'x', slug: 'x' })).status, 201)
  // Its record in the audit log was written by a clock that went ahead.
  const right = await platform(t, { state: k.state, environment: away })
  t.match(
    (await warningsOf(right)).filter(({ code }) => code.includes('clock')),
    [{ code: 'clock_behind', message: /by 3[56]\d\d s/ }]
  )
})

const checks = (id: string, warnings: () => unknown) => ({
  manifest: { id },
  definition: definePlugin({
    id,
    contributes(contribute) {
      contribute(configChecks, id, { warnings: async () => (await warnings()) as Warning[] })
    }
  })
})
const warning = { code: 'a_b', message: 'something is wrong', remedy: 'mend it' }

test('what plugins find is told too, without secrets and of bounded length; who answers nonsense is left out', async t => {
  const secret = 'correct-horse-battery'
  const lines: string[] = []
  const k = await platform(t, {
    environment: {
      ...away,
      SMTP_HOST: 'mail.example.com',
      SMTP_USER: 'a@example.com',
      SMTP_PASSWORD: secret
    },
    onLog: line => lines.push(line),
    inline: [
      checks('good', () => [warning, { ...warning, code: 'long', message: 'x'.repeat(5_000), more: 1 }]),
      checks('leaky', () => [{ ...warning, code: 'leaky', remedy: `write ${secret}` }]),
      checks('nonsense', () => [{ ...warning, code: 'No Code' }]),
      checks('none', () => 'nothing'),
      checks('failing', () => {
        throw new Error('broken')
      })
    ]
  })
  const warnings = await warningsOf(k)
  const of = (code: string) => warnings.filter(one => one.code === code)
  t.same(of('a_b'), [warning])
  t.ok((of('long')[0]?.message.length ?? Infinity) < 1_100)
  t.match(of('leaky'), [{ remedy: /\[REDACTED\]/ }])
  t.notMatch(JSON.stringify(warnings), secret)
  for (const plugin of ['nonsense', 'none', 'failing'])
    t.ok(
      lines.some(line => line.includes(`of the plugin \\"${plugin}\\" could not be taken`)),
      plugin
    )
})

test('the checks are made once for all who ask within half a minute', async t => {
  const clock = testClock(new Date())
  let made = 0
  const k = await platform(t, {
    clock,
    environment: away,
    inline: [
      checks('counted', () => {
        made++
        return [warning]
      })
    ]
  })
  await Promise.all([warningsOf(k), warningsOf(k)])
  t.equal(made, 1)
  await clock.advance(29_000)
  await warningsOf(k)
  t.equal(made, 1)
  await clock.advance(1_000)
  await warningsOf(k)
  t.equal(made, 2)
})
