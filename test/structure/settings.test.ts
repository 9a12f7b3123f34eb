import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnyPlugin, TSchema } from 'busbar/sdk'
import { test } from 'tap'
import { variableOf } from '../../sdk/settings.js'
import { environmentFaults } from './environment-reads.js'
import { namesIn, tableUnder } from './settings-docs.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const operations = read('docs/operations.md')

interface Field {
  readonly plugin: string
  readonly name: string
  readonly schema: TSchema
  /** The variable that sets it; undefined when the operator does. */
  readonly variable: string | undefined
}

async function declaredFields(): Promise<Field[]> {
  const plugins = readdirSync(join(root, 'plugins')).filter(id =>
    existsSync(join(root, 'plugins', id, 'plugin.json'))
  )
  const definitions = await Promise.all(
    plugins.map(async id => {
      const module = (await import(`../../plugins/${id}/index.js`)) as { readonly default: AnyPlugin }
      return module.default
    })
  )
  return definitions.flatMap(({ id, config }) =>
    Object.entries((config?.properties ?? {}) as Record<string, TSchema>).map(([name, schema]) => ({
      plugin: id,
      name,
      schema,
      variable: variableOf(schema)?.name
    }))
  )
}

/** A default as the tables have it; undefined where the schema has none, and the table tells it in words. */
const shownDefault = ({ schema }: Field): string | undefined =>
  schema.default === undefined ? undefined : `\`${schema.default}\``

test('docs/operations.md lists the variables of all plugins, and no others, with their defaults', async t => {
  const rows = tableUnder(operations, '### Plugins')
  const listed = rows.flatMap(([names = '', , plugin = '']) =>
    namesIn(names).map(name => `${plugin}: ${name}`)
  )
  const fields = (await declaredFields()).filter(({ variable }) => variable !== undefined)
  t.same(listed.sort(), fields.map(({ plugin, variable }) => `${plugin}: ${variable}`).sort())
  for (const field of fields) {
    const [, given] = rows.find(([names = '']) => namesIn(names).includes(field.variable ?? '')) ?? []
    const expected = shownDefault(field)
    if (expected !== undefined) t.equal(given, expected, field.name)
  }
})

test('docs/operations.md lists the settings that operators store, and no others, with their defaults', async t => {
  const fields = (await declaredFields()).filter(({ variable }) => variable === undefined)
  let plugin = ''
  const listed = new Map<string, string>()
  for (const [owner = '', names = '', given = ''] of tableUnder(operations, '### Settings of plugins')) {
    plugin = owner === '' ? plugin : owner
    for (const name of namesIn(names)) listed.set(`${plugin}: ${name}`, given)
  }
  t.same([...listed.keys()].sort(), fields.map(field => `${field.plugin}: ${field.name}`).sort())
  for (const field of fields) {
    const expected = shownDefault(field)
    if (expected !== undefined) t.equal(listed.get(`${field.plugin}: ${field.name}`), expected, field.name)
  }
})

test("docs/operations.md lists the platform's own variables, and no others", async t => {
  const names = (path: string, pattern: RegExp): string[] =>
    [...new Set([...read(path).matchAll(pattern)].map(([, name = '']) => name))].sort()
  const listed = (heading: string): string[] =>
    tableUnder(operations, heading)
      .flatMap(([name = '']) => namesIn(name))
      .sort()
  t.same(
    listed('### Platform'),
    [
      ...names('core/config/environment.ts', /\('([A-Z][A-Z_]+)'/g),
      ...names('core/log/log.ts', /process\.env\.([A-Z_]+)/g)
    ].sort()
  )
  t.same(listed('### Keys'), names('core/secrets/key-source.ts', /environment\.([A-Z_]+)/g))
})

test('the variables of README.md are in docs/operations.md', async t => {
  const known = ['### Platform', '### Keys', '### Plugins'].flatMap(heading =>
    tableUnder(operations, heading).flatMap(([name = '']) => namesIn(name))
  )
  const named = tableUnder(read('README.md'), '## Settings').flatMap(([name = '']) => namesIn(name))
  t.not(named.length, 0)
  t.same(
    named.filter(name => !known.includes(name)),
    []
  )
})

test('no plugin reads the environment: its config says which variables set it', async t => {
  const files = ['plugins', 'examples/plugins'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.ts') && !/\/(?:test|node_modules)\//.test(path))
      .map(path => `${folder}/${path}`)
  )
  t.not(files.length, 0, 'the plugins were found')
  t.same(
    files.flatMap(path => environmentFaults(read(path)).map(fault => `${path}: ${fault}`)),
    []
  )
})

test('the rule finds each way to read the environment', async t => {
  for (const code of [
    'const port = process.env.PORT',
    "const port = process['env'].PORT",
    'const { env } = process',
    'const { argv, env: variables } = process',
    "import { env } from 'node:process'",
    "import process from 'process'",
    'const port = globalThis.process.env.PORT'
  ])
    t.not(environmentFaults(code).length, 0, code)
  for (const code of [
    '// process.env is for the kernel',
    "const text = 'process.env.PORT'",
    'const pid = process.pid',
    'const { env } = options'
  ])
    t.same(environmentFaults(code), [], code)
})
