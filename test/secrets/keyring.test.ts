import { spawn } from 'node:child_process'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isProblem } from 'busbar/sdk'
import { test } from 'tap'
import { createRedactor } from '../../core/log/redactor.js'
import { createKeyring } from '../../core/secrets/keyring.js'
import { secretsFor } from '../../core/secrets/secrets.js'

const hex = (digit: string) => digit.repeat(64)
const place = { table: 'account', column: 'password', row: '1' }

async function codeOf(run: () => unknown): Promise<string | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    return isProblem(error) ? `${error.code}: ${error.message}` : String(error)
  }
}

test('a value opens where it was sealed', async t => {
  const keyring = await createKeyring({ directory: t.testdir(), environment: { ENCRYPTION_KEY: hex('a') } })
  const secrets = secretsFor(keyring, createRedactor(), 'projects')
  const sealed = secrets.seal('pässword', place)
  t.match(sealed, /^b1\.v1\.[\w-]{16}\.[\w-]+$/)
  t.equal(secrets.open(sealed, place), 'pässword')
  t.equal(secrets.open(secrets.seal('', place), place), '')
  t.not(secrets.seal('pässword', place), sealed, 'the same value twice gives two texts')
})

test('a value opens in no other plugin, table, column or row', async t => {
  const keyring = await createKeyring({ directory: t.testdir(), environment: { ENCRYPTION_KEY: hex('a') } })
  const redactor = createRedactor()
  const sealed = secretsFor(keyring, redactor, 'projects').seal('hidden-value', place)
  const attempts = [
    () => secretsFor(keyring, redactor, 'other').open(sealed, place),
    ...[{ table: 'x' }, { column: 'x' }, { row: '2' }].map(
      change => () => secretsFor(keyring, redactor, 'projects').open(sealed, { ...place, ...change })
    )
  ]
  for (const attempt of attempts) {
    const code = await codeOf(attempt)
    t.match(code, /^E_SECRETS_CANNOT_OPEN/)
    t.notMatch(code, 'hidden-value')
  }
  t.match(await codeOf(() => secretsFor(keyring, redactor, 'a/b').seal('x', place)), 'E_SECRETS_PLACE')
})

test('a changed or foreign text is refused with words that say which', async t => {
  const keyring = await createKeyring({ directory: t.testdir(), environment: { ENCRYPTION_KEY: hex('a') } })
  const secrets = secretsFor(keyring, createRedactor(), 'projects')
  const sealed = secrets.seal('value', place)
  const last = sealed.at(-1) === 'A' ? 'B' : 'A'
  t.match(
    await codeOf(() => secrets.open(sealed.slice(0, -2) + last + sealed.slice(-1), place)),
    'E_SECRETS_CANNOT_OPEN'
  )
  for (const text of ['', 'plain', 'b1.v1', 'b2.v1.a.b', `${sealed}.x`, 'b1.v1.AAAAAAAAAAAAAAAA.AAAA']) {
    t.match(await codeOf(() => secrets.open(text, place)), 'E_SECRETS_MALFORMED', text)
  }
})

test('an unknown key is named, with the remedy', async t => {
  const old = await createKeyring({
    directory: t.testdir(),
    environment: { ENCRYPTION_KEYS: `old:${hex('b')}` }
  })
  const now = await createKeyring({ directory: t.testdir(), environment: { ENCRYPTION_KEY: hex('a') } })
  const sealed = secretsFor(old, createRedactor(), 'projects').seal('value', place)
  t.match(
    await codeOf(() => secretsFor(now, createRedactor(), 'projects').open(sealed, place)),
    /E_SECRETS_UNKNOWN_KEY.*projects\/account\/password\/1.*key old.*ENCRYPTION_KEYS/
  )
  for (const [text, code] of [
    [sealed, 'E_SECRETS_UNKNOWN_KEY'],
    ['plain', 'E_SECRETS_MALFORMED']
  ] as const)
    t.throws(
      () => secretsFor(now, createRedactor(), 'projects').open(text, place),
      { status: 500, code },
      'a fault of the installation, not of the caller'
    )
})

test('with several keys the last is used for new values, or the one that is named current', async t => {
  const directory = t.testdir()
  const one = await createKeyring({ directory, environment: { ENCRYPTION_KEY: hex('a') } })
  const keys = `v1:${hex('a')}, v2:${hex('b')}`
  const two = await createKeyring({ directory, environment: { ENCRYPTION_KEYS: keys } })
  t.equal(two.current, 'v2')
  const sealed = one.seal('value', 'a/b/c/d')
  t.equal(two.open(sealed, 'a/b/c/d'), 'value', 'the single key is v1')
  t.notOk(two.isCurrent(sealed))
  t.ok(two.isCurrent(two.seal('value', 'a/b/c/d')))
  t.equal(
    (await createKeyring({ directory, environment: { ENCRYPTION_KEYS: keys, ENCRYPTION_KEY_CURRENT: 'v1' } }))
      .current,
    'v1'
  )
})

test('keys that cannot be used are refused without showing them', async t => {
  const directory = t.testdir()
  const cases = [
    [{ ENCRYPTION_KEY: 'abc' }, 'E_SECRETS_KEY: ENCRYPTION_KEY'],
    [{ ENCRYPTION_KEYS: `v1:${hex('z')}` }, 'E_SECRETS_KEY: ENCRYPTION_KEYS (v1)'],
    [{ ENCRYPTION_KEYS: hex('a') }, 'E_SECRETS_KEY_ID'],
    [{ ENCRYPTION_KEYS: `v1:${hex('a')},v1:${hex('b')}` }, 'E_SECRETS_KEY_DUPLICATE'],
    [{ ENCRYPTION_KEY: hex('a'), ENCRYPTION_KEYS: `v1:${hex('b')}` }, 'E_SECRETS_KEY_DUPLICATE'],
    [{ ENCRYPTION_KEY: hex('a'), ENCRYPTION_KEY_CURRENT: 'v9' }, 'E_SECRETS_KEY_CURRENT']
  ] as const
  for (const [environment, code] of cases) {
    const message = await codeOf(() => createKeyring({ directory, environment }))
    t.ok(message?.startsWith(code), `${message}`)
    t.notMatch(message, hex('a'))
  }
})

test('without a key in the environment one is made once, readable by its owner only', async t => {
  const directory = join(t.testdir(), 'busbar')
  const redactor = createRedactor()
  const first = await createKeyring({ directory, environment: { ENCRYPTION_KEY: '' }, redactor })
  const path = join(directory, 'keys.json')
  t.equal((await stat(path)).mode & 0o777, 0o600)
  const second = await createKeyring({ directory, environment: {} })
  t.equal(second.open(first.seal('value', 'a/b/c/d'), 'a/b/c/d'), 'value')
  const text = await readFile(path, 'utf8')
  t.notMatch(redactor.clean(text), /[0-9a-f]{64}/, 'the key itself never shows')

  const given = await createKeyring({ directory, environment: { ENCRYPTION_KEY: hex('a') } })
  t.equal(given.current, 'v1')
  t.equal(
    given.open(first.seal('value', 'a/b/c/d'), 'a/b/c/d'),
    'value',
    'the file goes on opening old values'
  )
})

test('processes that start at once agree on the key', async t => {
  const directory = join(t.testdir(), 'busbar')
  const program = `import('${new URL('../../core/secrets/keyring.ts', import.meta.url).href}').then(async m => {
    const keyring = await m.createKeyring({ directory: ${JSON.stringify(directory)}, environment: {} })
    console.log(keyring.current)
  })`
  const ids = await Promise.all(
    [1, 2, 3].map(
      () =>
        new Promise<string>((resolve, reject) => {
          const child = spawn(
            process.execPath,
            ['--import=tsx', '--conditions=busbar-source', '-e', program],
            { stdio: ['ignore', 'pipe', 'inherit'] }
          )
          let output = ''
          child.stdout.on('data', data => {
            output += data
          })
          child.on('error', reject).on('close', () => resolve(output.trim()))
        })
    )
  )
  t.match(ids[0], /^k[0-9a-f]{8}$/)
  t.equal(new Set(ids).size, 1)

  const racing = join(t.testdir(), 'race')
  const rings = await Promise.all(
    Array.from({ length: 20 }, () => createKeyring({ directory: racing, environment: {} }))
  )
  t.equal(new Set(rings.map(ring => ring.current)).size, 1)
})

test('a damaged key file stops the start instead of being replaced', async t => {
  for (const text of ['', '{}', '{"current":"a","keys":{}}', '{"current":"a","keys":{"a":1}}']) {
    const directory = t.testdir()
    await writeFile(join(directory, 'keys.json'), text)
    t.match(
      await codeOf(() => createKeyring({ directory, environment: {} })),
      /E_SECRETS_KEY_FILE.*keys\.json/
    )
  }
})

test('a signature proves one text of one plugin of one installation, and nothing else', async t => {
  const redactor = createRedactor()
  const keyring = await createKeyring({ directory: t.testdir(), environment: { ENCRYPTION_KEY: hex('a') } })
  const secrets = secretsFor(keyring, redactor, 'runtime-docker')
  const code = secrets.sign('mine')
  t.match(code, /^v1\.[\w-]{43}$/)
  t.equal(secrets.sign('mine'), code, 'the same text is signed the same way')
  t.equal(secrets.verify('mine', code), true)
  t.equal(secrets.verify('yours', code), false)
  t.equal(
    secretsFor(keyring, redactor, 'other').verify('mine', code),
    false,
    'another plugin did not write it'
  )
  const foreign = await createKeyring({ directory: t.testdir(), environment: { ENCRYPTION_KEY: hex('b') } })
  t.equal(
    secretsFor(foreign, redactor, 'runtime-docker').verify('mine', code),
    false,
    'nor did another installation, whose key has the same name'
  )
  for (const text of [
    '',
    '.',
    'v1',
    'v1.',
    code.slice(0, -1),
    `${code}.x`,
    `${code}AAAA`,
    code.replace('v1', 'v2'),
    code.replace('v1', '__proto__'),
    'v1.ü'
  ]) {
    t.equal(secrets.verify('mine', text), false, text)
  }
})

test('what was signed by an earlier key is still known, until that key is taken away', async t => {
  const redactor = createRedactor()
  const at = async (environment: Record<string, string>) =>
    secretsFor(await createKeyring({ directory: t.testdir(), environment }), redactor, 'runtime-docker')
  const code = (await at({ ENCRYPTION_KEYS: `old:${hex('a')}` })).sign('mine')
  const rotated = await at({ ENCRYPTION_KEYS: `old:${hex('a')},new:${hex('b')}` })
  t.equal(rotated.verify('mine', code), true)
  t.match(rotated.sign('mine'), /^new\./)
  t.equal((await at({ ENCRYPTION_KEYS: `new:${hex('b')}` })).verify('mine', code), false)
})
