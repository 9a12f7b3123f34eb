import {
  type AnyPlugin,
  definePlugin,
  fromEnvironment,
  MisconfiguredError,
  maybe,
  object,
  oneOf,
  Type
} from 'busbar/sdk'
import { createTestKernel, settingsFrom } from 'busbar/sdk/testing'
import { test } from 'tap'

const port = Type.Integer({ minimum: 1, maximum: 65_535, default: 7000 })
const shop = {
  manifest: { id: 'shop' },
  definition: definePlugin({
    id: 'shop',
    config: object({
      rows: Type.Integer({ default: 10 }),
      colour: Type.String({ default: 'red' }),
      port: fromEnvironment('SHOP_PORT', port),
      other_port: fromEnvironment('SHOP_OTHER_PORT', port),
      mode: maybe(fromEnvironment('SHOP_MODE', oneOf(['fast', 'safe']))),
      is_open: maybe(fromEnvironment('SHOP_OPEN', Type.Boolean())),
      hosts: maybe(fromEnvironment('SHOP_HOSTS', Type.Array(Type.String({ maxLength: 9 })))),
      range: fromEnvironment('SHOP_RANGE', Type.String({ default: '1-2' }), {
        takes: 'two numbers, like 1-2',
        parse: text => {
          const [, first, last] = /^(\d)-(\d)$/.exec(text) ?? []
          return first === undefined ? undefined : { first: Number(first), last: Number(last) }
        }
      }),
      key: maybe(fromEnvironment('SHOP_KEY', Type.String({ minLength: 12 }), { secret: true }))
    }),
    start: ({ config }) => {
      started.push(config)
      if (config.mode === 'safe' && config.key === undefined)
        throw new MisconfiguredError('SHOP_MODE is safe, but SHOP_KEY is not set')
      return {}
    }
  })
}
const started: unknown[] = []

test('a variable sets its field, and the plugin is shown with every value and where it comes from', async t => {
  const k = await createTestKernel({
    inline: [shop],
    environment: {
      SHOP_PORT: ' 8000 ',
      SHOP_OTHER_PORT: '',
      SHOP_OPEN: 'true',
      SHOP_HOSTS: 'a, b,',
      SHOP_RANGE: '3-4',
      SHOP_KEY: 'correct horse battery'
    }
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  t.equal((await admin.put('/api/plugins/shop/config', { rows: 20 })).status, 200)
  t.same(started.at(-1), {
    rows: 20,
    colour: 'red',
    port: 8000,
    other_port: 7000,
    is_open: true,
    hosts: ['a', 'b'],
    range: { first: 3, last: 4 },
    key: 'correct horse battery'
  })
  const { body } = await admin.get('/api/plugins/shop')
  t.same(body.config, { rows: 20 }, 'what the operator has stored, and can store again')
  t.match(body.config_schema.properties, {
    rows: { default: 10, 'x-source': 'stored', 'x-value': 20 },
    colour: { default: 'red', 'x-source': 'default', 'x-value': 'red' },
    port: {
      default: 7000,
      readOnly: true,
      'x-environment': 'SHOP_PORT',
      'x-source': 'environment',
      'x-value': 8000
    },
    other_port: { 'x-source': 'default', 'x-value': 7000 },
    mode: { 'x-source': 'default', 'x-value': undefined },
    range: { 'x-source': 'environment', 'x-value': '3-4' },
    key: { 'x-source': 'environment', 'x-value': undefined }
  })
  t.notMatch(JSON.stringify(body), /battery/)
})

test('a field of the environment cannot be stored', async t => {
  const k = await createTestKernel({ inline: [shop] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  t.match(await admin.put('/api/plugins/shop/config', { port: 7 }), {
    status: 400,
    body: { code: 'E_PLUGIN_CONFIG', error: /"port" is set by the environment variable SHOP_PORT alone/ }
  })
  t.match(await admin.put('/api/plugins/shop/config', { prot: 7 }), {
    status: 400,
    body: { error: /"prot" is unknown; known are rows, colour$/ }
  })
  t.match((await admin.get('/api/plugins/shop')).body, { state: 'running', config: {} })
})

test('every variable that cannot be used is named with what it takes, and no secret is told', async t => {
  const lines: string[] = []
  const k = await createTestKernel({
    inline: [shop],
    environment: {
      SHOP_PORT: '0x10',
      SHOP_OTHER_PORT: '65536',
      SHOP_MODE: 'slow',
      SHOP_OPEN: 'yes',
      SHOP_HOSTS: 'a,much-too-long',
      SHOP_RANGE: '3',
      SHOP_KEY: 'battery'
    },
    onLog: line => {
      lines.push(line)
    }
  })
  t.teardown(() => k.close())
  const { body } = await (await k.as.session()).get('/api/plugins/shop')
  t.equal(body.state, 'misconfigured')
  t.same(body.reason.split('; '), [
    'SHOP_PORT is "0x10"',
    'it takes a whole number from 1 to 65535',
    'SHOP_OTHER_PORT is "65536"',
    'it takes a whole number from 1 to 65535',
    'SHOP_MODE is "slow"',
    'it takes fast, safe',
    'SHOP_OPEN is "yes"',
    'it takes true or false',
    'SHOP_HOSTS/1 must have at most 9 characters',
    'SHOP_RANGE is "3"',
    'it takes two numbers, like 1-2',
    'SHOP_KEY must have at least 12 characters'
  ])
  t.notMatch(JSON.stringify(body), /battery/)
  t.ok(lines.some(line => line.includes('the plugin did not start') && line.includes('SHOP_PORT is')))
  t.notOk(lines.some(line => line.includes('battery')))
})

test('settings that cannot be used together are told by the plugin, which is not started again', async t => {
  const k = await createTestKernel({ inline: [shop], environment: { SHOP_MODE: 'safe' } })
  t.teardown(() => k.close())
  // `retrying` would be one that is started again.
  t.match((await (await k.as.session()).get('/api/plugins/shop')).body, {
    state: 'misconfigured',
    reason: 'SHOP_MODE is safe, but SHOP_KEY is not set'
  })
})

test('every variable that must be set is named when it is not, beside those that cannot be used', async t => {
  const needy = object({
    key: fromEnvironment('NEEDY_KEY', Type.String()),
    size: fromEnvironment('NEEDY_SIZE', Type.Number({ maximum: 9 })),
    mode: fromEnvironment('NEEDY_MODE', oneOf(['fast', 'safe']))
  })
  t.throws(() => settingsFrom(needy, { NEEDY_MODE: 'slow' }), {
    message:
      'NEEDY_KEY is not set; NEEDY_SIZE is not set; it takes a number up to 9; NEEDY_MODE is "slow"; it takes fast, safe'
  })
})

test('a default that the plugin itself cannot read is told, and is no setting that is missing', async t => {
  const vague = object({
    range: fromEnvironment('VAGUE_RANGE', Type.String({ default: 'all' }), {
      takes: 'a number',
      parse: text => (/^\d+$/.test(text) ? Number(text) : undefined)
    })
  })
  t.same(settingsFrom(vague, { VAGUE_RANGE: '3' }), { range: 3 })
  t.throws(() => settingsFrom(vague), {
    message: 'the default of VAGUE_RANGE cannot be used; it takes a number'
  })
})

test('the built-in plugins say which of their variables cannot be used', async t => {
  for (const [plugin, variable, value] of [
    ['builds', 'BUILD_TIMEOUT_MINUTES', 'soon'],
    ['builds', 'IMAGE_PULL_TIMEOUT_MINUTES', '0'],
    ['builds', 'GIT_PRIVATE_HOSTS', 'http://git.lan'],
    ['databases', 'BUSBAR_DATABASE_PORTS', '5-1'],
    ['deployments', 'TASK_TIMEOUT_MINUTES', '1.5'],
    ['deployments', 'HEALTH_CHECK_INTERVAL_SECONDS', '-1'],
    ['direct', 'BUSBAR_DIRECT_PORTS', '5-1'],
    ['identity', 'JWT_EXPIRY_HOURS', 'never'],
    ['mail', 'SMTP_PORT', '0'],
    ['mail', 'SMTP_TLS_MODE', 'ssl'],
    ['runtime-docker', 'DOCKER_HOST', 'nonsense'],
    ['runtime-docker', 'BUSBAR_SUBNETS', '10.1.0.0/27'],
    ['runtime-docker', 'HOST_PORTS_FOR_CONTAINERS', 'http'],
    ['runtime-docker', 'BUILD_PRIVATE_HOSTS', 'git.lan'],
    ['runtime-docker', 'MAX_CONTAINER_CONNECTIONS', 'many'],
    ['runtime-docker', 'BUSBAR_INSTANCE_ID', 'a,b']
  ] as const) {
    const { default: definition } = (await import(`../../plugins/${plugin}/index.js`)) as {
      readonly default: AnyPlugin
    }
    t.throws(
      () => settingsFrom(definition.config, { [variable]: value }),
      { message: `${variable} is "${value}"; it takes ` },
      variable
    )
  }
})
