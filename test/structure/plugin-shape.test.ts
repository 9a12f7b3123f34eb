import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { type Import, readImportGraph } from './import-graph.js'
import {
  contractFaults,
  indexFaults,
  indexImportFault,
  migrationFault,
  type PluginFiles,
  shapeFaults
} from './plugin-shape.js'

const root = join(import.meta.dirname, '../..')
const { imports } = readImportGraph(root)
const folders = readdirSync(join(root, 'plugins'), { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)
const isContract = (id: string): boolean => existsSync(join(root, 'plugins', id, 'contract.json'))
const plugins = folders.filter(id => !isContract(id)).map(readPlugin)

function readPlugin(id: string): PluginFiles {
  const paths = readdirSync(join(root, 'plugins', id), { withFileTypes: true }).flatMap(entry =>
    entry.name === 'migrations'
      ? readdirSync(join(root, 'plugins', id, 'migrations')).map(name => `migrations/${name}`)
      : entry.name.endsWith('.ts')
        ? [entry.name]
        : []
  )
  return {
    id,
    texts: new Map(paths.map(path => [path, readFileSync(join(root, 'plugins', id, path), 'utf8')]))
  }
}

test('every plugin is assembled in the same way', async t => {
  t.not(plugins.length, 0, 'the plugins were found')
  t.same(
    plugins.flatMap(plugin => shapeFaults(plugin).map(fault => `${plugin.id}: ${fault}`)),
    []
  )
})

test('a contract is an api and nothing that runs', async t => {
  const contracts = folders.filter(isContract)
  t.not(contracts.length, 0, 'the contracts were found')
  t.same(
    contracts.flatMap(id =>
      contractFaults(readdirSync(join(root, 'plugins', id))).map(fault => `${id}: ${fault}`)
    ),
    []
  )
  t.same(contractFaults(['contract.json', 'api.ts', 'ship.ts', 'README.md']), [])
  for (const more of ['index.ts', 'plugin.json', 'migrations', 'test'])
    t.match(contractFaults(['contract.json', 'api.ts', more]), [more])
  t.match(contractFaults(['contract.json']), ['api.ts is not there'])
})

test('nothing but tests imports the list of a plugin', async t => {
  t.same(
    imports
      .filter(edge => indexImportFault(edge) !== null)
      .map(({ from, specifier }) => `${from} imports ${specifier}`),
    []
  )
})

const list = (body: string, more = ''): string => `
import { definePlugin } from 'busbar/sdk'
import { createNotes } from './migrations/001-create-notes.js'
import { needs, startNotes } from './notes.js'
${more}
export default definePlugin({ id: 'notes', ${body} })
`

const forbidden: ReadonlyArray<readonly [title: string, code: string]> = [
  ['a method', list('start({ use }) { return { use } }')],
  ['an arrow function', list('start: ({ use }) => ({ use })')],
  ['a function that is called', list('start: startNotes()')],
  ['needs that are written out', list('needs: { a: needs }')],
  ['a migration that is written out', list("migrations: [{ name: '1' }]")],
  ['an object that is spread', list('...startNotes')],
  ['a value of its own', list('start: startNotes', 'const limit = 5')],
  ['a name of its own', list('start: begin', 'const begin = startNotes')],
  ['a function beside it', list('start: startNotes', 'function help() {}')],
  ['an exported value', list('start: startNotes', 'export const limit = 5')],
  ['an exported interface', list('start: startNotes', 'export interface Notes {\n  readonly a: string\n}')],
  ['an exported type', list('start: startNotes', 'export type Notes = string')],
  ['a type that is imported', list('start: startNotes', "import type { Notes } from './notes.js'")],
  ['an export that is passed on', list('start: startNotes', "export { limit } from './notes.js'")],
  ['another default export', 'export default { id: 1 }'],
  ['no default export', "import './notes.js'"]
]

test('the rules refuse an index.ts that is more than a list', async t => {
  for (const [title, code] of forbidden) t.not(indexFaults(code).length, 0, title)
  t.same(indexFaults(list('needs, migrations: [createNotes], start: startNotes')), [])
})

test('a migration is called by what it does', async t => {
  const exporting = (name: string): string => `export const ${name}: Migration = { name: '001-create-notes' }`
  t.type(migrationFault('migrations/001-create-notes.ts', exporting('m001')), 'string')
  t.type(migrationFault('migrations/001-create-notes.ts', exporting('createPages')), 'string')
  t.type(migrationFault('migrations/create-notes.ts', exporting('createNotes')), 'string')
  t.type(migrationFault('migrations/001-create-notes.ts', ''), 'string')
  t.equal(migrationFault('migrations/001-create-notes.ts', exporting('createNotes')), null)
})

test('the assembly has a file of the name of the plugin', async t => {
  const index = list('start: startNotes')
  const texts = new Map([['index.ts', index]])
  t.same(shapeFaults({ id: 'notes', texts }), ['notes.ts is not there: the assembly belongs in it'])
  t.same(shapeFaults({ id: 'notes', texts: new Map([...texts, ['notes.ts', '']]) }), [])
})

test('the list of a plugin is imported by tests alone, types included', async t => {
  const edge = (from: string, to: string): Import => ({ from, specifier: './index.js', to, isTypeOnly: true })
  t.type(indexImportFault(edge('plugins/notes/routes.ts', 'plugins/notes/index.ts')), 'string')
  t.type(indexImportFault(edge('core/kernel.ts', 'plugins/notes/index.ts')), 'string')
  t.equal(indexImportFault(edge('plugins/notes/test/kit.ts', 'plugins/notes/index.ts')), null)
  t.equal(indexImportFault(edge('core/kernel.ts', 'embedded-postgres/index.ts')), null)
})
