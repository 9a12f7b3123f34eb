import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { publishedTables } from './published-tables.js'
import {
  foreignTableFaults,
  type Published,
  publishedTableFaults,
  type SqlModule,
  tablesMade
} from './table-names.js'

const root = join(import.meta.dirname, '../..')
const schemaOf = (plugin: string): string => plugin.replaceAll('-', '_')

/** Each module of a folder but its tests. */
const modulesIn = (folder: string, owner: string): SqlModule[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts') && !/(?:^|\/)test\//.test(path))
    .map(path => join(folder, path))
    .map(path => ({ path, owner, code: readFileSync(join(root, path), 'utf8') }))

interface PluginFolder {
  readonly id: string
  readonly folder: string
  readonly owner: string
  readonly requires: readonly string[]
}

const pluginsIn = (folder: string, prefix = ''): PluginFolder[] =>
  readdirSync(join(root, folder)).flatMap(id => {
    const manifest = join(root, folder, id, 'plugin.json')
    if (!existsSync(manifest)) return []
    const { requires = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as { requires?: object }
    return [{ id, folder: join(folder, id), owner: prefix + schemaOf(id), requires: Object.keys(requires) }]
  })

const plugins = [...pluginsIn('plugins'), ...pluginsIn('examples/plugins', 'x_')]
const modules = new Map(plugins.map(({ folder, owner }) => [folder, modulesIn(folder, owner)]))
const kernel = [...modulesIn('core', 'kernel'), ...modulesIn('sdk', 'kernel')]
const all = [...modules.values()].flat().concat(kernel)

const published = await publishedTables(root)
const idIn = (specifier: string): string => specifier.replace('busbar/api/', '')

test('no SQL names a table of another plugin, or of the kernel', async t => {
  const tables = tablesMade(all)
  t.ok(['projects.project', 'identity.user', 'kernel.migration'].every(table => tables.includes(table)))
  t.same(
    all.flatMap(module => foreignTableFaults(module, tables)),
    []
  )
})

test('a published table is of the plugin that publishes it', async t => {
  for (const [id, tables] of published)
    for (const { name } of tables.values()) t.equal(name.split('.')[0], schemaOf(id), name)
  t.same(
    [...published.values()].flatMap(tables => [...tables.values()].map(({ reference }) => reference)).sort(),
    [
      'applications.application (id)',
      'certificates.certificate (id)',
      'databases.database (id)',
      'identity.user (id)',
      'projects.project (id)',
      'volumes.volume (id)'
    ],
    'what is published stays: migrations that have run hold these words'
  )
})

test('SQL reads of the published tables of others what they publish', async t => {
  const faults = plugins.flatMap(({ folder, requires }) =>
    (modules.get(folder) ?? []).flatMap(module =>
      publishedTableFaults(module, (specifier, name) => {
        const table = published.get(idIn(specifier))?.get(name)
        return table !== undefined && !requires.includes(idIn(specifier)) ? null : table
      })
    )
  )
  t.same(faults, [])
})

const module = (code: string): SqlModule => ({ path: 'plugins/notes/a.ts', owner: 'notes', code })

test('a table of another plugin is found in capitals, quotes, templates and constant texts that are joined', async t => {
  const tables = tablesMade([
    {
      path: '',
      owner: 'pages',
      code: 'create table $schema.page (id int); create table if not exists $schema.line ()'
    },
    { path: '', owner: 'notes', code: 'create table $schema.note (id int)' }
  ])
  t.same(tables, ['pages.page', 'pages.line', 'notes.note'])
  for (const sql of [
    "'select * from pages.page'",
    "'SELECT * FROM Pages.Page'",
    `'select * from "pages"."page"'`,
    "'select * from pages . page'",
    '`select * from pages.line where ${all}`',
    "'select * from pages' + '.page'"
  ])
    t.equal(foreignTableFaults(module(`db.sql(${sql})`), tables).length > 0, true, sql)
  for (const sql of [
    "'select * from notes.note'",
    "'select * from pages.pages'",
    "'select * from other.pages.page'",
    "'select pages.page_id'",
    'pages.page'
  ])
    t.same(foreignTableFaults(module(`db.sql(${sql}) // pages.page`), tables), [], sql)
})

test('what is not published is found, and a table without an alias', async t => {
  const page = { name: 'pages.page', columns: { id: 'uuid', title: 'text' } }
  const faults = (sql: string, table: Published | null = page): string[] =>
    publishedTableFaults(
      module(`import { pageTable as pages } from 'busbar/api/pages'; const sql = ${sql}`),
      (specifier, name) => (specifier === 'busbar/api/pages' && name === 'pageTable' ? table : undefined)
    )
  t.same(faults('`select p.id from ${pages.name} p where p.title = ?`'), [])
  t.same(faults('`select p.id from ${pages.name} as p join $schema.note n on n.page_id = p.id`'), [])
  t.same(
    faults('`create table $schema.note (page_id uuid references ${pages.reference} on delete restrict)`'),
    []
  )
  t.match(faults('`select p.secret from ${pages.name} p`'), [/p\.secret/])
  t.match(faults('`select p.* from ${pages.name} p`'), [/p\.\*/])
  t.match(faults("[`join ${pages.name} as page on true`, 'page.secret']"), [/page\.secret/])
  t.match(faults('`select id from ${pages.name}`'), [/without an alias/])
  t.match(faults('`select id from ${pages.name} where id = ?`'), [/without an alias/])
  t.match(faults('`select p.id from ${pages.name} p`', null), [/does not require/])
})
