import type { AnyNode, ExportSpecifier, ObjectExpression, Program } from 'acorn'
import type { Import } from './import-graph.js'
import { parseJavaScript, parseTypeScript } from './syntax-tree.js'

/** The files of one plugin that its shape is about, by their paths in its folder. */
export interface PluginFiles {
  readonly id: string
  readonly texts: ReadonlyMap<string, string>
}

/** What keeps a plugin from having the shape of all: a list, its assembly in a file of its name, migrations named by what they do. */
export function shapeFaults({ id, texts }: PluginFiles): string[] {
  const assembly = `${id}.ts`
  return [
    ...indexFaults(texts.get('index.ts') ?? '').map(fault => `index.ts ${fault}`),
    ...(texts.has(assembly) ? [] : [`${assembly} is not there: the assembly belongs in it`]),
    ...[...texts].flatMap(([path, code]) => {
      const fault = path.startsWith('migrations/') ? migrationFault(path, code) : null
      return fault === null ? [] : [`${path} ${fault}`]
    })
  ]
}

/** What keeps a folder with a contract from being one: it says what plugins provide, and does nothing. */
export function contractFaults(files: readonly string[]): string[] {
  return [
    ...(files.includes('api.ts') ? [] : ['api.ts is not there: the contract belongs in it']),
    ...files
      .filter(file => !/^(?:contract\.json|README\.md|[a-z0-9-]+\.ts)$/.test(file) || file === 'index.ts')
      .map(file => `${file} belongs into a plugin that implements the contract`)
  ]
}

/** What of an index.ts is more than a list of imported names. A list has no types, so it is read as it stands. */
export function indexFaults(code: string): string[] {
  let statements: Program['body']
  try {
    statements = parseJavaScript(code).body
  } catch (error) {
    return [`has types in it, or cannot be read: ${String(error)}`]
  }
  const imported = new Set(
    statements.flatMap(statement =>
      statement.type === 'ImportDeclaration' ? statement.specifiers.map(({ local }) => local.name) : []
    )
  )
  const others = statements.filter(({ type }) => type !== 'ImportDeclaration')
  const [statement] = others
  if (others.length !== 1 || statement?.type !== 'ExportDefaultDeclaration')
    return ['holds something else than imports and one default export']
  const definition = definitionIn(statement.declaration)
  return definition === undefined
    ? ['exports something else than definePlugin({ … })']
    : definition.properties.flatMap(property => listFault(property, imported))
}

function definitionIn(node: AnyNode): ObjectExpression | undefined {
  if (node.type !== 'CallExpression' || node.arguments.length !== 1) return undefined
  const [definition] = node.arguments
  return node.callee.type === 'Identifier' &&
    node.callee.name === 'definePlugin' &&
    definition?.type === 'ObjectExpression'
    ? definition
    : undefined
}

function listFault(
  property: ObjectExpression['properties'][number],
  imported: ReadonlySet<string>
): string[] {
  if (property.type === 'SpreadElement') return ['spreads an object']
  const name = property.key.type === 'Identifier' ? property.key.name : 'a value'
  const isImported = (node: AnyNode | null): boolean => node?.type === 'Identifier' && imported.has(node.name)
  const { value } = property
  const isListed =
    value.type === 'ArrayExpression'
      ? value.elements.every(isImported)
      : isImported(value) || (name === 'id' && value.type === 'Literal')
  return isListed ? [] : [`writes out ${name} instead of naming what it imports`]
}

/** `001-create-notes.ts` exports `createNotes`. */
export function migrationFault(path: string, code: string): string | null {
  const words = /^migrations\/\d{3}-([a-z0-9-]+)\.ts$/.exec(path)?.[1]
  if (words === undefined) return 'is not called NNN-what-it-does.ts'
  const wanted = words.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
  // The compiler exports all names in one statement at the end.
  const exported = parseTypeScript(code).program.body.flatMap(statement =>
    statement.type === 'ExportNamedDeclaration' ? statement.specifiers.map(nameOf) : []
  )
  return exported.length === 1 && exported[0] === wanted
    ? null
    : `exports ${exported.join(', ') || 'nothing'} instead of ${wanted}`
}

/** What is wrong with an import of a plugin's list; null when it is another import, or of a test. */
export function indexImportFault({ from, to }: Import): string | null {
  const isTest = /(?:^|\/)test\//.test(from)
  return isTest || to === null || !/^plugins\/[^/]+\/index\.ts$/.test(to)
    ? null
    : 'only tests import the index.ts of a plugin: what it lists is imported from where it is'
}

const nameOf = ({ exported }: ExportSpecifier): string =>
  exported.type === 'Identifier' ? exported.name : String(exported.value)
