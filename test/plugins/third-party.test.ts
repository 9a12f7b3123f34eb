import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const manifest = (id: string, more: object = {}): string =>
  JSON.stringify({ id, version: '1.0.0', sdk: '^0.1.0', name: id, description: 'A test.', ...more })

const code = (id: string, text: string): string =>
  `${`
import { allow, definePlugin } from 'busbar/sdk'
import { words } from './words.js'
export default definePlugin({
  id: '${id}',
  routes (route) {
    route({ method: 'GET', url: '/api/x/${id}/', summary: 's', access: allow.public('a test'), handler: () => ({ text: words }) })
  }
})
`.replace(`/api/x/${id}/`, `/api/x/${id}/words`)}// ${text}\n`

interface Installed {
  readonly k: TestKernel
  readonly home: string
  write(name: string, text: string): Promise<void>
}

/** A platform with one third-party plugin in `<BUSBAR_DIR>/plugins`, not turned on. */
async function install(t: Test, id: string, files: Record<string, string>): Promise<Installed> {
  const home = await mkdtemp(join(tmpdir(), 'busbar-plugins-'))
  const folder = join(home, id)
  await mkdir(folder, { recursive: true })
  const write = async (name: string, text: string): Promise<void> => {
    await writeFile(join(folder, name), text)
  }
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const k = await createTestKernel({ thirdParty: home })
  t.teardown(async () => {
    await k.close()
    await rm(home, { recursive: true, force: true })
  })
  return { k, home, write }
}

test('a third-party plugin in TypeScript waits to be turned on, runs, and runs changed code after a reload', async t => {
  const { k, write } = await install(t, 'words', {
    'plugin.json': manifest('words'),
    'index.ts': code('words', 'one'),
    'words.ts': 'export const words: string = "first"'
  })
  const admin = await k.as.session()
  t.match((await admin.get('/api/plugins/words')).body, {
    state: 'installed',
    built_in: false,
    wanted: false
  })
  t.match(await k.as.anonymous().get('/api/x/words/words'), {
    status: 404,
    body: { error: /no running plugin "words"/ }
  })
  t.match(await admin.post('/api/plugins/words/enable'), { status: 200, body: { state: 'running' } })
  t.match((await k.as.anonymous().get('/api/x/words/words')).body, { text: 'first' })
  await write('words.ts', 'export const words: string = "second"')
  t.match(await admin.post('/api/plugins/words/reload'), { status: 200 })
  t.match((await k.as.anonymous().get('/api/x/words/words')).body, { text: 'second' })
})

test('a reload whose code is broken leaves the old version serving', async t => {
  const { k, write } = await install(t, 'words', {
    'plugin.json': manifest('words'),
    'index.ts': code('words', 'one'),
    'words.ts': 'export const words = "good"'
  })
  const admin = await k.as.session()
  await admin.post('/api/plugins/words/enable')
  await write('words.ts', 'export const words = ')
  t.match(await admin.post('/api/plugins/words/reload'), {
    status: 409,
    body: { code: 'E_PLUGIN_RELOAD', error: /words\.ts:1/ }
  })
  await write('words.ts', 'throw new Error("not today"); export const words = 1')
  t.match(await admin.post('/api/plugins/words/reload'), { status: 409, body: { error: /not today/ } })
  t.match((await k.as.anonymous().get('/api/x/words/words')).body, { text: 'good' })
  t.match((await admin.get('/api/plugins/words')).body, { state: 'running' })
})

test('a reload that cannot be plugged in leaves what the old version contributed', async t => {
  const mood = (answer: string, more = ''): string => `
    import { definePlugin, healthChecks } from 'busbar/sdk'
    const check = async () => '${answer}'
    export default definePlugin({ id: 'mood', contributes: contribute => { contribute(healthChecks, 'mood', { check }); ${more} } })`
  const { k, write } = await install(t, 'mood', { 'plugin.json': manifest('mood'), 'index.js': mood('good') })
  const admin = await k.as.session()
  await admin.post('/api/plugins/mood/enable')
  await write('index.js', mood('bad', "contribute(healthChecks, 'docker', { check })"))
  t.match(await admin.post('/api/plugins/mood/reload'), {
    status: 409,
    body: { code: 'E_PLUGIN_RELOAD', error: /"docker" .*already contributed by the plugin "runtime-docker"/ }
  })
  t.equal((await k.as.anonymous().get('/healthz')).body.checks.mood, 'good')
})

const refused: Array<[string, string, RegExp, object?]> = [
  ['loops for ever at load', 'for (;;) {}', /did not finish loading within 5 s/],
  ['ends the process at load', 'process.exit(3)', /ended the process while loading \(exit code 3\)/],
  ['eats all memory at load', 'const a = []; for (;;) a.push(new Array(1e5).fill(1))', /while loading/],
  ['has no definition', 'export default {}', /no default export made by definePlugin/],
  [
    'claims a path of another',
    `
    import { allow, definePlugin } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', routes: route => route({ method: 'GET', url: '/api/projects', summary: 's', access: allow.public('x'), handler: () => 1 }) })`,
    /paths begin with \/api\/x\/bad\//
  ],
  [
    'leaves out the access',
    `
    import { definePlugin } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', routes: route => route({ method: 'GET', url: '/api/x/bad/a', summary: 's', handler: () => 1 }) })`,
    /access is missing/
  ],
  [
    'misspells a scope and declares twice',
    `
    import { definePlugin } from 'busbar/sdk'
    const spec = { method: 'GET', url: '/api/x/bad/a', summary: 's', access: { kind: 'token', scope: 'raed', project: 'none' }, handler: () => 1 }
    const good = { ...spec, access: { kind: 'token', scope: 'read', project: 'none' } }
    export default definePlugin({ id: 'bad', routes: route => { route(spec); route(good); route(good) } })`,
    /scope "raed" is none of.*declared twice/
  ],
  [
    'uses what it did not ask for',
    `
    import { definePlugin, kernel } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', needs: { db: kernel.database }, start: () => ({}) })`,
    /add "database" to "grants"/
  ],
  [
    'reads what decides who is let in',
    `
    import { access, definePlugin } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', needs: { sources: access.credentials }, start: () => ({}) })`,
    /"access\.credentials", which is not for third-party plugins/
  ],
  [
    'changes what others contributed',
    `
    import { definePlugin, healthChecks } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', needs: { healthChecks }, start: ({ use }) => { use.healthChecks.entries().push({}); return {} } })`,
    /not extensible/
  ],
  [
    'asks for what is not for it',
    `
    import { definePlugin, kernel } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', needs: { credentials: kernel.credentials }, start: () => ({}) })`,
    /not for third-party plugins/,
    { grants: ['credentials'] }
  ],
  [
    'requires what is not for it',
    `
    import { definePlugin, service } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', needs: { identity: service('identity.accounts') }, start: () => ({}) })`,
    /uses the service "identity.accounts", which is not for third-party plugins/,
    { requires: { identity: '*' } }
  ],
  [
    'wants to send messages as the platform',
    `
    import { definePlugin, service } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', needs: { mailer: service('mail.mailer') }, start: () => ({}) })`,
    /uses the service "mail.mailer", which is not for third-party plugins/,
    { requires: { mail: '*' } }
  ],
  [
    'wants to say who is signed in',
    `
    import { access, definePlugin } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', contributes: contribute => contribute(access.credentials, 'bad', { find: async () => undefined }) })`,
    /contributes to "access.credentials", which is not for third-party plugins/
  ],
  [
    'has a faulty migration',
    `
    import { definePlugin, kernel } from 'busbar/sdk'
    export default definePlugin({ id: 'bad', migrations: [{ name: '001-x', phase: 'expand', sql: 'create tabel $schema.x ()' }] })`,
    /migration 001-x of bad failed in line 1/,
    { grants: ['database'] }
  ]
]

for (const [what, index, reason, more] of refused) {
  test(`a third-party plugin that ${what} is refused with the reason, and the platform goes on`, async t => {
    const { k } = await install(t, 'bad', { 'plugin.json': manifest('bad', more), 'index.js': index })
    const answer = await (await k.as.session()).post('/api/plugins/bad/enable')
    t.equal(answer.status, 409)
    t.match(answer.body.error, reason)
    t.equal((await k.as.anonymous().get('/healthz')).status, 200)
  })
}

test('a faulty plugin.json is shown with its fault and starts nothing', async t => {
  const { k } = await install(t, 'bad', { 'plugin.json': '{ "id": "bad", "colour": 1 }', 'index.js': '' })
  t.match((await (await k.as.session()).get('/api/plugins/bad')).body, {
    state: 'failed',
    reason: /must NOT have additional properties "colour"/
  })
})

test('a third-party plugin cannot take the id of a built-in one', async t => {
  const { k } = await install(t, 'projects', { 'plugin.json': manifest('projects'), 'index.js': 'throw 1' })
  t.match((await (await k.as.session()).get('/api/plugins/projects')).body, {
    built_in: true,
    state: 'running'
  })
})

test('a timer that throws marks its plugin and not the platform', async t => {
  const { k } = await install(t, 'stray', {
    'plugin.json': manifest('stray'),
    'index.js': `
    import { definePlugin } from 'busbar/sdk'
    export default definePlugin({ id: 'stray', start: () => ({}) })`
  })
  await (await k.as.session()).post('/api/plugins/stray/enable')
  k.kernel.reconciler.noteUncaughtError('stray', new Error('from a timer'))
  t.match((await (await k.as.session()).get('/api/plugins/stray')).body, {
    state: 'degraded',
    reason: /from a timer/
  })
})

test('a plugin whose start took the process down is quarantined at the next boot until it is enabled again', async t => {
  const { k, home } = await install(t, 'words', {
    'plugin.json': manifest('words'),
    'index.ts': code('words', 'one'),
    'words.ts': 'export const words = "back"'
  })
  await (await k.as.session()).post('/api/plugins/words/enable')
  await k.stop()
  await writeFile(join(k.state.directory, 'starting', 'starting-4194303'), 'words')
  const next = await createTestKernel({ state: k.state, thirdParty: home })
  const admin = await next.as.session()
  t.match((await admin.get('/api/plugins/words')).body, {
    state: 'quarantined',
    reason: /the process died while this plugin was starting/
  })
  t.match(await admin.post('/api/plugins/words/enable'), { status: 200, body: { state: 'running' } })
  t.match((await next.as.anonymous().get('/api/x/words/words')).body, { text: 'back' })
  await next.stop()
})

test('plugins that had started less than a minute before two deaths in a row are quarantined; one death alone, or a stop, is no reason', async t => {
  const { k, home } = await install(t, 'words', {
    'plugin.json': manifest('words'),
    'index.ts': code('words', 'one'),
    'words.ts': 'export const words = "back"'
  })
  await (await k.as.session()).post('/api/plugins/words/enable')
  const folder = join(k.state.directory, 'starting')
  const [file = ''] = await readdir(folder)
  const marks = await readFile(join(folder, file), 'utf8')
  await k.stop()
  t.same(await readdir(folder), [], 'a stop leaves no mark')
  const bootAfterDeath = async (text: string): Promise<unknown> => {
    await writeFile(join(folder, 'starting-4194303'), text)
    const next = await createTestKernel({ state: k.state, thirdParty: home })
    const { state, reason } = (await (await next.as.session()).get('/api/plugins/words')).body
    await next.stop()
    return { state, reason }
  }
  t.match(await bootAfterDeath(marks), { state: 'running' }, 'it may have been switched off')
  t.same(await readdir(folder), [], 'and a stop after that is the end of the suspicion')
  // As the boot after a death leaves it that ends by the next death.
  await writeFile(join(folder, 'suspects'), 'words\n')
  t.match(
    await bootAfterDeath(`${marks}direct\n`),
    { state: 'quarantined', reason: /died twice in a row/ },
    'not only the one that was just starting'
  )
  const { kernel, stop, as } = await createTestKernel({ state: k.state, thirdParty: home })
  t.equal(kernel.reconciler.entries.get('direct')?.state.name, 'running')
  t.match(await (await as.session()).post('/api/plugins/words/enable'), { status: 200 })
  await stop()
})
