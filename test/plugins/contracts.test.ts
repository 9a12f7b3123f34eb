import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin, service } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { installation, routeText, writePlugin } from './third-party-kit.js'

/** A contract `ships` of one service; a provider answers with its name. */
const key = "const fleet = service('ships.fleet');"
const provider = (name: string): string =>
  `start: () => ({ name: async () => '${name}' }), provides: (provide, self) => provide(fleet, self),`
const asks = (id: string): string =>
  `needs: { fleet }, start: ({ use }) => use, routes(route) {
    ${routeText(id, 'ship', 'async (_request, { fleet }) => ({ ship: await fleet.name() })')}
  },`
const hopes = (id: string): string =>
  `needs: { fleet: optional(fleet) }, start: ({ use }) => use, routes(route) {
    ${routeText(id, 'ship', "async (_request, { fleet }) => ({ ship: (await fleet.get()?.name()) ?? 'none' })")}
  },`

async function ships(...[t]: Parameters<typeof installation>) {
  const platform = await installation(t)
  const { home, write, admin } = platform
  await mkdir(join(home, 'ships'))
  const contract = async (version: string) =>
    await writeFile(
      join(home, 'ships', 'contract.json'),
      JSON.stringify({ id: 'ships', version, name: 'Ships', description: 'A test.' })
    )
  await contract('1.0.0')
  const provide = async (id: string, range = '^1.0.0') =>
    await write(id, provider(id), { before: key, manifest: { implements: { ships: range } } })
  const need = async (id: string, range = '^1.0.0') =>
    await write(id, asks(id), { before: key, manifest: { requires: { ships: range } } })
  const stateOf = async (id: string) => (await admin.get(`/api/plugins/${id}`)).body
  return {
    ...platform,
    contract,
    provide,
    need,
    stateOf,
    ship: async (id: string) => await admin.get(`/api/x/${id}/ship`)
  }
}

test('a plugin that requires a contract runs with the plugin that implements it', async t => {
  const { change, provide, need, stateOf, ship } = await ships(t)
  await need('crew')
  t.match(await change('crew', 'enable'), {
    status: 409,
    body: {
      code: 'E_PLUGIN_BLOCKED',
      error: 'the plugin "crew" cannot run: it requires "ships" ^1.0.0, which no installed plugin implements'
    }
  })
  await provide('steamer')
  t.match(await change('crew', 'enable'), {
    status: 409,
    body: {
      error: 'the plugin "crew" cannot run: it needs "ships", which nothing provides ("steamer" is installed)'
    }
  })
  t.match(await change('steamer', 'enable'), {
    status: 200,
    body: { implements: ['ships'], dependents: ['crew'] }
  })
  t.match(await stateOf('crew'), { state: 'running', requires: ['ships'] }, 'it was waiting')
  t.match(await ship('crew'), { status: 200, body: { ship: 'steamer' } })
  t.match(await change('steamer', 'disable'), {
    status: 409,
    body: { code: 'E_PLUGIN_NEEDED', dependents: ['crew'] }
  })
  t.equal((await change('steamer', 'reload')).status, 200)
  t.match(await ship('crew'), { body: { ship: 'steamer' } })
})

test('one of two plugins that implement a contract is on, and the operator chooses which', async t => {
  const { change, provide, need, stateOf, ship, write, k } = await ships(t)
  await provide('sailer')
  await provide('steamer')
  await need('crew')
  await write('guest', hopes('guest'), { before: key, manifest: { optional: { ships: '^1.0.0' } } })
  for (const id of ['steamer', 'crew', 'guest']) t.equal((await change(id, 'enable')).status, 200, id)

  await t.test('a second one is refused with the names of both and what to do', async t => {
    t.match(await change('sailer', 'enable'), {
      status: 409,
      body: {
        code: 'E_PLUGIN_RIVAL',
        error:
          '"sailer" and "steamer" both implement "ships", and one plugin may at a time: turn "steamer" off first, with "force": true where others need it; they come back with "sailer"',
        provider: 'steamer',
        contract: 'ships'
      }
    })
    t.match(await stateOf('sailer'), { state: 'installed', wanted: false })
    t.match(await ship('crew'), { body: { ship: 'steamer' } })
  })

  await t.test('with force those that need it wait for the other one', async t => {
    t.equal((await change('steamer', 'disable', { force: true })).status, 200)
    t.match(await stateOf('crew'), {
      state: 'blocked',
      reason: 'it needs "ships", which nothing provides ("sailer" is installed, "steamer" is stopped)'
    })
    t.match(await ship('crew'), { status: 404, body: { code: 'E_PLUGIN_OFF', plugin: 'crew' } })
    t.match(await ship('guest'), { body: { ship: 'none' } })
    t.equal((await change('sailer', 'enable')).status, 200)
    t.match(await ship('crew'), { body: { ship: 'sailer' } })
    t.match(await ship('guest'), { body: { ship: 'sailer' } })
    t.match(await change('steamer', 'enable'), {
      status: 409,
      body: { code: 'E_PLUGIN_RIVAL', provider: 'sailer' }
    })
  })

  await t.test('with cascade they go off too, and come back with either', async t => {
    t.equal((await change('sailer', 'disable', { cascade: true })).status, 200)
    t.match(await stateOf('crew'), { state: 'stopped', wanted: false })
    t.match(await stateOf('guest'), { state: 'running' })
    t.equal((await change('steamer', 'enable', { cascade: true })).status, 200)
    t.match(await stateOf('crew'), { state: 'running' })
    t.match(await ship('crew'), { body: { ship: 'steamer' } })
  })

  await t.test(
    'where both are wanted after all, the one that runs goes on, and the other says why it waits',
    async t => {
      await k.kernel.postgres.query("update kernel.plugin set desired = 'on' where id = 'sailer'")
      await k.kernel.reconciler.refresh('')
      t.match(await stateOf('sailer'), {
        state: 'blocked',
        reason: '"steamer" implements "ships" too, and one plugin may at a time: turn one of them off'
      })
      t.match(await ship('crew'), { body: { ship: 'steamer' } })
      t.equal((await change('steamer', 'disable', { force: true })).status, 200)
      t.match(await stateOf('sailer'), { state: 'running' }, 'it has been waiting')
      t.match(await ship('crew'), { body: { ship: 'sailer' } })
    }
  )
})

test('versions of contracts are checked as those of plugins', async t => {
  const { change, provide, need, contract, stateOf } = await ships(t)
  await provide('steamer')
  await need('crew', '^2.0.0')
  t.equal((await change('steamer', 'enable')).status, 200)
  t.match(await change('crew', 'enable'), {
    status: 409,
    body: { error: 'the plugin "crew" cannot run: it requires "ships" ^2.0.0, but 1.0.0 is installed' }
  })
  t.equal((await change('steamer', 'disable', { force: true })).status, 200)
  await contract('2.0.0')
  t.match(await change('steamer', 'enable'), {
    status: 409,
    body: { error: 'the plugin "steamer" cannot run: it implements "ships" ^1.0.0, but 2.0.0 is installed' }
  })
  await provide('steamer', '^2.0.0')
  t.equal((await change('steamer', 'enable')).status, 200)
  t.match(await stateOf('crew'), { state: 'running' })
})

test('a built-in plugin that requires a contract waits for the third-party plugin that implements it, also at the start', async t => {
  const home = await mkdtemp(join(tmpdir(), 'busbar-plugins-'))
  await mkdir(join(home, 'ships'))
  await writeFile(
    join(home, 'ships', 'contract.json'),
    JSON.stringify({ id: 'ships', version: '1.0.0', name: 'Ships', description: 'A test.' })
  )
  await writePlugin(home, 'steamer', provider('steamer'), {
    before: key,
    manifest: { implements: { ships: '^1.0.0' } }
  })
  const fleet = service<{ name(): Promise<string> }>('ships.fleet')
  const options = {
    thirdParty: home,
    inline: [
      {
        manifest: { id: 'crew', requires: { ships: '^1.0.0' } },
        definition: definePlugin({ id: 'crew', needs: { fleet }, start: ({ use }) => use })
      }
    ]
  }
  let k = await createTestKernel(options)
  t.teardown(async () => {
    await k.close()
    await rm(home, { recursive: true, force: true })
  })
  const stateOf = async (id: string) => (await (await k.as.session()).get(`/api/plugins/${id}`)).body
  t.match(await stateOf('crew'), {
    state: 'blocked',
    reason: 'it needs "ships", which nothing provides ("steamer" is installed)'
  })
  t.equal((await (await k.as.session()).post('/api/plugins/steamer/enable')).status, 200)
  t.match(await stateOf('crew'), { state: 'running' })
  await k.stop()
  k = await createTestKernel({ ...options, state: k.state })
  t.match(await stateOf('steamer'), { state: 'running' })
  t.match(await stateOf('crew'), { state: 'running' })
})

const notGranted =
  'it implements "ships", which is not granted yet; disable it and enable it again to grant that'

test('no update of a third-party plugin takes a contract from one of the release', async t => {
  const home = await mkdtemp(join(tmpdir(), 'busbar-plugins-'))
  await mkdir(join(home, 'ships'))
  await writeFile(
    join(home, 'ships', 'contract.json'),
    JSON.stringify({ id: 'ships', version: '1.0.0', name: 'Ships', description: 'A test.' })
  )
  await writePlugin(home, 'greeter', '')
  const fleet = service<{ name(): Promise<string> }>('ships.fleet')
  const options = {
    thirdParty: home,
    inline: [
      {
        manifest: { id: 'harbour', implements: { ships: '^1.0.0' } },
        definition: definePlugin({
          id: 'harbour',
          start: () => ({ name: async () => 'harbour' }),
          provides: (provide, self) => provide(fleet, self)
        })
      }
    ]
  }
  let k = await createTestKernel(options)
  t.teardown(async () => {
    await k.close()
    await rm(home, { recursive: true, force: true })
  })
  const stateOf = async (id: string) => (await (await k.as.session()).get(`/api/plugins/${id}`)).body
  t.equal((await (await k.as.session()).post('/api/plugins/greeter/enable')).status, 200)
  await writePlugin(home, 'greeter', provider('greeter'), {
    before: key,
    manifest: { implements: { ships: '^1.0.0' } }
  })
  await k.stop()
  k = await createTestKernel({ ...options, state: k.state })
  t.match(await stateOf('harbour'), { state: 'running' })
  t.match(await stateOf('greeter'), { state: 'blocked', reason: notGranted })
})

test('what an update implements counts when an operator has turned the plugin on again', async t => {
  const { change, need, provide, stateOf, ship, write } = await ships(t)
  await need('crew')
  await write('steamer', '')
  t.equal((await change('steamer', 'enable')).status, 200)
  await provide('steamer')
  t.match(await change('steamer', 'reload'), { status: 409, body: { error: new RegExp(notGranted) } })
  t.match(await change('crew', 'enable'), {
    status: 409,
    body: { error: /which no installed plugin implements/ }
  })
  t.equal((await change('steamer', 'disable')).status, 200)
  t.equal((await change('steamer', 'enable')).status, 200)
  t.match(await stateOf('crew'), { state: 'running' })
  t.match(await ship('crew'), { body: { ship: 'steamer' } })
})

test('a reload that no longer implements what others need is refused, and what runs goes on', async t => {
  const { change, provide, need, ship, write } = await ships(t)
  await provide('steamer')
  await provide('sailer')
  await need('crew')
  for (const id of ['steamer', 'crew']) t.equal((await change(id, 'enable')).status, 200, id)
  await write('steamer', provider('steamer'), { before: key })
  t.match(await change('steamer', 'reload'), {
    status: 409,
    body: { code: 'E_PLUGIN_RELOAD', error: /"crew" would not run beside it: it needs "ships"/ }
  })
  t.match(await ship('crew'), { body: { ship: 'steamer' } })
})

test('a plugin that fits no version of a contract is told so, whatever provides it', async t => {
  const { change, provide } = await ships(t)
  await provide('steamer')
  t.equal((await change('steamer', 'enable')).status, 200)
  await provide('sailer', '^2.0.0')
  t.match(await change('sailer', 'enable'), {
    status: 409,
    body: { code: 'E_PLUGIN_BLOCKED', error: /it implements "ships" \^2.0.0, but 1.0.0 is installed/ }
  })
})

test('a plugin provides services of contracts that it implements, and of no others', async t => {
  const { change, write } = await ships(t)
  await write('idle', '', { manifest: { implements: { ships: '^1.0.0' } } })
  t.match(await change('idle', 'enable'), {
    status: 409,
    body: {
      error: 'the plugin "idle" did not start: "idle" implements "ships" and provides none of its services'
    }
  })
  t.equal((await change('idle', 'disable')).status, 200)
  await write('liar', provider('liar'), { before: key })
  t.match(await change('liar', 'enable'), {
    status: 409,
    body: {
      error: 'the plugin "liar" did not start: "liar" provides "ships.fleet"; its services begin with "liar."'
    }
  })
})

test('an id is of a plugin or of a contract, and a faulty contract is shown with its fault', async t => {
  const { admin, home, write, stateOf } = await ships(t)
  await write('containers', '')
  await mkdir(join(home, 'boats'))
  await writeFile(join(home, 'boats', 'contract.json'), '{ "id": "boat" }')
  const { body } = await admin.get('/api/plugins')
  const faults = body.items.filter(({ state }: { state: string }) => state === 'failed')
  t.match(faults.map(({ reason }: { reason: string }) => reason).sort(), [
    /^contract.json must have required property 'version'/,
    /^the id "containers" is already taken by .*plugins\/containers$/
  ])
  t.equal((await stateOf('ships')).code, 'E_PLUGIN_UNKNOWN', 'a contract is no plugin')
})
