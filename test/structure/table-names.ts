import type { AnyNode } from 'acorn'
import { full } from 'acorn-walk'
import { parseTypeScript } from './syntax-tree.js'

/** One file of a plugin; `owner` is the schema of that plugin. */
export interface SqlModule {
  readonly path: string
  readonly owner: string
  readonly code: string
}

/** What a plugin's `api.ts` publishes, as far as SQL of others is concerned. */
export interface Published {
  readonly name: string
  readonly columns: Readonly<Record<string, string>>
}

/** The tables that migrations make, with their schema: `projects.project`. */
export const tablesMade = (modules: readonly SqlModule[]): string[] =>
  modules.flatMap(({ owner, code }) =>
    [...code.matchAll(/create table (?:if not exists )?(?:\$schema|kernel)\.(\w+)/g)].map(
      ([, name]) => `${owner}.${name}`
    )
  )

/** Where a text names a table of another plugin, or of the kernel: `tables` are all of them. */
export function foreignTableFaults({ path, owner, code }: SqlModule, tables: readonly string[]): string[] {
  const foreign = tables
    .filter(table => !table.startsWith(`${owner}.`))
    .map(table => ({ table, pattern: patternOf(table) }))
  return moduleOf(code).texts.flatMap(text =>
    foreign
      .filter(({ pattern }) => pattern.test(text))
      .map(
        ({ table }) => `${path} names ${table}: its plugin publishes it in api.ts, or it is not for others`
      )
  )
}

/** However SQL may write it: `"projects" . "project"`. */
function patternOf(table: string): RegExp {
  const [schema, name] = table.split('.')
  return new RegExp(`(?<![\\w."$])"?${schema}"?\\s*\\.\\s*"?${name}(?!\\w)`, 'i')
}

/**
 * What is wrong with the use of published tables in a module's SQL. Each has an alias there, so that the columns
 * read through it can be held against those that are published. `published` is by the specifier and the name
 * that are imported; null where the plugin is not in `requires`.
 */
export function publishedTableFaults(
  { path, code }: SqlModule,
  published: (specifier: string, name: string) => Published | null | undefined
): string[] {
  const { imports, texts } = moduleOf(code)
  const tables = new Map<string, Published>()
  const faults: string[] = []
  for (const { specifier, name, local } of imports) {
    const table = published(specifier, name)
    if (table === null) faults.push(`${path} uses ${name}: its plugin.json does not require ${specifier}`)
    else if (table !== undefined) tables.set(local, table)
  }
  if (tables.size === 0) return faults
  const aliases = new Map<string, Published>()
  for (const text of texts) {
    for (const [, local = '', rest = ''] of text.matchAll(/\$\{(\w+)\.name\}((?:\s+\w+){0,2})/g)) {
      const table = tables.get(local)
      if (table === undefined) continue
      const alias = aliasIn(rest)
      if (alias === undefined) faults.push(`${path} uses ${local} without an alias`)
      else if ((aliases.get(alias) ?? table) !== table) faults.push(`${path}: ${alias} is two tables`)
      else aliases.set(alias, table)
    }
  }
  for (const text of texts) {
    for (const [, alias = '', column = ''] of text.matchAll(/(?<![\w.$:])(\w+)\.(\w+|\*)/g)) {
      const table = aliases.get(alias)
      if (table !== undefined && !(column in table.columns))
        faults.push(`${path} reads ${alias}.${column}: ${table.name} does not publish it`)
    }
  }
  return faults
}

const keywords = new Set(
  'where on using join inner left right full cross natural order group limit for set'.split(' ')
)

function aliasIn(rest: string): string | undefined {
  const [first, second] = rest.trim().split(/\s+/)
  const alias = first === 'as' ? second : first
  return alias === undefined || alias === '' || keywords.has(alias) ? undefined : alias
}

interface ImportedName {
  readonly specifier: string
  readonly name: string
  readonly local: string
}

/** What a module imports by name, and its texts; what stands in a template is kept as `${…}`. */
function moduleOf(code: string): { imports: ImportedName[]; texts: string[] } {
  const { javascript, program } = parseTypeScript(code)
  const imports: ImportedName[] = []
  const texts: string[] = []
  full(program, node => {
    const known = node as AnyNode
    const text = textOf(known, javascript)
    if (text !== undefined) texts.push(text)
    if (known.type !== 'ImportDeclaration') return
    for (const specifier of known.specifiers)
      if (specifier.type === 'ImportSpecifier' && specifier.imported.type === 'Identifier')
        imports.push({
          specifier: String(known.source.value),
          name: specifier.imported.name,
          local: specifier.local.name
        })
  })
  return { imports, texts }
}

function textOf(node: AnyNode, javascript: string): string | undefined {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined
  if (node.type === 'TemplateLiteral')
    return node.quasis
      .map(({ value }, at) => {
        const inner = node.expressions[at]
        return `${value.cooked}${inner === undefined ? '' : `\${${javascript.slice(inner.start, inner.end)}}`}`
      })
      .join('')
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return undefined
  const [left, right] = [textOf(node.left as AnyNode, javascript), textOf(node.right, javascript)]
  return left === undefined || right === undefined ? undefined : left + right
}
