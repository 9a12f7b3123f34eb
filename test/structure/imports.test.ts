import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { findCycles, type Import, readImportGraph } from './import-graph.js'
import { type Dependencies, faultOf } from './import-rules.js'

const root = join(import.meta.dirname, '../..')
const { files, imports } = readImportGraph(root)
const plugins = readDependencies(['plugins', 'examples/plugins'])

function readDependencies(folders: readonly string[]): Map<string, Dependencies> {
  const found = new Map<string, Dependencies>()
  for (const folder of folders) {
    for (const name of readdirSync(join(root, folder))) {
      if (existsSync(join(root, folder, name, 'contract.json')))
        found.set(`${folder}/${name}/`, { isContract: true, requires: [], optional: [] })
      const file = join(root, folder, name, 'plugin.json')
      if (!existsSync(file)) continue
      const manifest = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<string, object>>
      const idsIn = (key: string) => Object.keys(manifest[key] ?? {})
      found.set(`${folder}/${name}/`, {
        requires: idsIn('requires'),
        optional: idsIn('optional'),
        implements: idsIn('implements')
      })
    }
  }
  return found
}

test('every file imports only what its part of the project may import', async t => {
  t.ok(
    imports.some(({ from }) => from.startsWith('core/')) &&
      imports.some(({ from }) => from.startsWith('plugins/')),
    'core and plugins were read'
  )
  const faults = imports.flatMap(edge => {
    const fault = faultOf(edge, plugins)
    return fault === null ? [] : [`${edge.from} imports ${edge.specifier}: ${fault}`]
  })
  t.same(faults, [])
})

test('no plugin names one that implements a contract: it names the contract', async t => {
  const providers = [...plugins].filter(([, { implements: contracts = [] }]) => contracts.length > 0)
  t.not(providers.length, 0, 'a provider was found')
  const ids = providers.map(([folder]) => folder.split('/').at(-2) ?? '')
  t.same(
    [...plugins].flatMap(([folder, { requires, optional }]) =>
      [...requires, ...optional].filter(id => ids.includes(id)).map(id => `${folder} names ${id}`)
    ),
    []
  )
})

test('no files import each other in a circle', async t => {
  t.same(findCycles(imports), [])
})

test('no file is longer than 500 lines, 650 of tests, or named after nothing', async t => {
  const own = files.filter(({ path }) =>
    /^(core|embedded-postgres|sdk|plugins|examples|scripts|bench|test)\//.test(path)
  )
  t.same(
    own
      .filter(({ path, lines }) => lines > (/(^|\/)test\//.test(path) ? 650 : 500))
      .filter(({ path }) => !path.endsWith('.generated.ts'))
      .map(({ path, lines }) => `${path}: ${lines} lines`),
    []
  )
  t.same(
    own
      .filter(({ path }) => /(^|[/-])(utils?|helpers?|managers?|misc)(\.|\/|-)/.test(path))
      .map(({ path }) => path),
    []
  )
})

const edge = (from: string, specifier: string, to: string | null, isTypeOnly = false): Import => ({
  from,
  specifier,
  to,
  isTypeOnly
})
const known = new Map<string, Dependencies>([
  ['plugins/a/', { requires: ['b'], optional: ['c'] }],
  ['examples/plugins/x/', { requires: ['b'], optional: [] }],
  ['plugins/ships/', { isContract: true, requires: [], optional: [] }],
  ['plugins/ports/', { isContract: true, requires: [], optional: [] }],
  ['plugins/steamer/', { requires: [], optional: [], implements: ['ships'] }],
  ['plugins/crew/', { requires: ['ships', 'steamer'], optional: [] }]
])

const forbidden: ReadonlyArray<readonly [string, Import]> = [
  ['the sdk imports core', edge('sdk/route.ts', '../core/kernel.js', 'core/kernel.ts')],
  ['the sdk imports core as a type', edge('sdk/route.ts', '../core/kernel.js', 'core/kernel.ts', true)],
  ['the sdk loads knex', edge('sdk/kernel.ts', 'knex', null)],
  ['the sdk loads pino', edge('sdk/kernel.ts', 'pino', null)],
  ['core imports a plugin', edge('core/kernel.ts', '../plugins/a/index.js', 'plugins/a/index.ts')],
  ['core imports the api of a plugin', edge('core/kernel.ts', 'busbar/api/a', 'plugins/a/api.ts', true)],
  [
    'a layer of core imports one above it',
    edge('core/database/a.ts', '../http/b.js', 'core/http/b.ts', true)
  ],
  ['a layer of core imports one beside it', edge('core/bus/a.ts', '../jobs/b.js', 'core/jobs/b.ts')],
  ['core has a folder without a layer', edge('core/new/a.ts', '../clock/b.js', 'core/clock/b.ts')],
  ['core imports a test', edge('core/kernel.ts', '../lab/engine.js', 'lab/engine.ts')],
  [
    'core outside the kernel imports the embedded PostgreSQL',
    edge('core/database/postgres.ts', '../../embedded-postgres/index.js', 'embedded-postgres/index.ts', true)
  ],
  [
    'the kernel imports the inside of the embedded PostgreSQL',
    edge('core/kernel.ts', '../embedded-postgres/server.js', 'embedded-postgres/server.ts')
  ],
  [
    'the rest of the test kit imports the embedded PostgreSQL',
    edge('sdk/testing/test-kernel.ts', '../../embedded-postgres/index.js', 'embedded-postgres/index.ts')
  ],
  [
    'a plugin imports the embedded PostgreSQL',
    edge('plugins/a/index.ts', '../../embedded-postgres/index.js', 'embedded-postgres/index.ts')
  ],
  [
    'the embedded PostgreSQL imports core',
    edge('embedded-postgres/server.ts', '../core/log/log.js', 'core/log/log.ts', true)
  ],
  [
    'the embedded PostgreSQL loads the sdk',
    edge('embedded-postgres/server.ts', 'busbar/sdk', 'sdk/index.ts')
  ],
  ['the embedded PostgreSQL loads a library', edge('embedded-postgres/server.ts', 'pino', null)],
  ['a plugin imports core', edge('plugins/a/index.ts', '../../core/kernel.js', 'core/kernel.ts', true)],
  ['a plugin imports the test kit', edge('plugins/a/index.ts', 'busbar/sdk/testing', 'sdk/testing/index.ts')],
  ['a plugin imports the sdk by path', edge('plugins/a/index.ts', '../../sdk/index.js', 'sdk/index.ts')],
  [
    'a plugin imports the inside of another',
    edge('plugins/a/index.ts', '../b/b-store.js', 'plugins/b/b-store.ts')
  ],
  ['a plugin imports an api by path', edge('plugins/a/index.ts', '../b/api.js', 'plugins/b/api.ts')],
  [
    'a plugin imports an api it does not name',
    edge('plugins/a/index.ts', 'busbar/api/d', 'plugins/d/api.ts', true)
  ],
  [
    'an api imports the inside of its plugin',
    edge('plugins/a/api.ts', './a-store.js', 'plugins/a/a-store.ts', true)
  ],
  ['a plugin loads knex', edge('plugins/a/a-store.ts', 'knex', null)],
  ['a plugin loads dockerode', edge('plugins/a/a.ts', 'dockerode', null, true)],
  ['fastify outside the edge', edge('core/plugins/loader.ts', 'fastify', null)],
  ['awilix outside the services', edge('core/kernel.ts', 'awilix', null)],
  ['pg outside the database', edge('core/jobs/jobs.ts', 'pg', null)],
  ['otplib outside identity', edge('plugins/a/totp.ts', 'otplib', null)],
  ['argon2 in core', edge('core/auth/authenticator.ts', '@node-rs/argon2', null)],
  ['the test kit imports a plugin', edge('sdk/testing/test-kernel.ts', 'busbar/api/b', 'plugins/b/api.ts')],
  [
    'a third-party plugin imports an api it does not name',
    edge('examples/plugins/x/index.ts', 'busbar/api/a', 'plugins/a/api.ts')
  ],
  [
    'a plugin imports an api of one that implements a contract',
    edge('plugins/crew/crew.ts', 'busbar/api/steamer', 'plugins/steamer/api.ts')
  ],
  [
    'a plugin imports the inside of a contract',
    edge('plugins/crew/crew.ts', '../ships/ship.js', 'plugins/ships/ship.ts')
  ],
  [
    'a plugin implements another contract than it says',
    edge('plugins/steamer/steamer.ts', 'busbar/api/ports', 'plugins/ports/api.ts')
  ],
  ['a contract imports a plugin', edge('plugins/ships/api.ts', 'busbar/api/a', 'plugins/a/api.ts', true)],
  [
    'a contract imports a plugin that implements it',
    edge('plugins/ships/ship.ts', '../steamer/steamer.js', 'plugins/steamer/steamer.ts', true)
  ],
  ['a contract imports core', edge('plugins/ships/api.ts', '../../core/kernel.js', 'core/kernel.ts', true)],
  ['a contract loads a library', edge('plugins/ships/api.ts', 'node:stream', null)],
  ['a file that is not there', edge('test/any.test.ts', './gone.js', null)]
]

const permitted: ReadonlyArray<readonly [string, Import]> = [
  ['the sdk names a type of knex', edge('sdk/kernel.ts', 'knex', null, true)],
  ['the test kit boots core', edge('sdk/testing/index.ts', '../../core/kernel.js', 'core/kernel.ts')],
  [
    'the test kit makes users',
    edge('sdk/testing/test-kernel.ts', 'busbar/api/identity', 'plugins/identity/api.ts')
  ],
  [
    'the kernel starts the embedded PostgreSQL',
    edge('core/kernel.ts', '../embedded-postgres/index.js', 'embedded-postgres/index.ts')
  ],
  [
    'the test kit starts the embedded PostgreSQL',
    edge('sdk/testing/cluster.ts', '../../embedded-postgres/index.js', 'embedded-postgres/index.ts')
  ],
  [
    'the embedded PostgreSQL names a type of the sdk',
    edge('embedded-postgres/server.ts', 'busbar/sdk', 'sdk/index.ts', true)
  ],
  ['the embedded PostgreSQL asks its server', edge('embedded-postgres/server.ts', 'pg', null)],
  ['core imports the sdk', edge('core/kernel.ts', 'busbar/sdk', 'sdk/index.ts')],
  ['an api names a type of knex', edge('plugins/a/api.ts', 'knex', null, true)],
  ['an api imports another api', edge('plugins/a/api.ts', 'busbar/api/b', 'plugins/b/api.ts')],
  ['a plugin imports an api it requires', edge('plugins/a/index.ts', 'busbar/api/b', 'plugins/b/api.ts')],
  [
    'a plugin imports an api it uses when it is there',
    edge('plugins/a/index.ts', 'busbar/api/c', 'plugins/c/api.ts')
  ],
  ['a plugin imports a contract', edge('plugins/crew/crew.ts', 'busbar/api/ships', 'plugins/ships/api.ts')],
  [
    'a plugin imports a contract that it implements',
    edge('plugins/steamer/steamer.ts', 'busbar/api/ships', 'plugins/ships/api.ts')
  ],
  [
    'a contract is written in several files',
    edge('plugins/ships/api.ts', './ship.js', 'plugins/ships/ship.ts')
  ],
  ['a contract imports the sdk', edge('plugins/ships/api.ts', 'busbar/sdk', 'sdk/index.ts')],
  [
    'a contract imports another one',
    edge('plugins/ships/ship.ts', 'busbar/api/ports', 'plugins/ports/api.ts', true)
  ],
  ['a contract names a type of Node', edge('plugins/ships/api.ts', 'node:stream', null, true)],
  ['a test imports anything', edge('plugins/a/test/a.test.ts', '../../../core/kernel.js', 'core/kernel.ts')],
  ['runtime-docker loads dockerode', edge('plugins/runtime-docker/engine.ts', 'dockerode', null)]
]

test('the rules refuse what they are there to refuse', async t => {
  for (const [title, bad] of forbidden) t.type(faultOf(bad, known), 'string', title)
  for (const [title, good] of permitted) t.equal(faultOf(good, known), null, title)
})

test('a circle is found, and one of types only is none', async t => {
  const circle = [
    edge('a.ts', './b.js', 'b.ts'),
    edge('b.ts', './c.js', 'c.ts'),
    edge('c.ts', './b.js', 'b.ts'),
    edge('c.ts', './d.js', 'd.ts')
  ]
  t.same(findCycles(circle), [['b.ts', 'c.ts']])
  t.same(findCycles([edge('a.ts', './b.js', 'b.ts'), edge('b.ts', './a.js', 'a.ts', true)]), [])
})
