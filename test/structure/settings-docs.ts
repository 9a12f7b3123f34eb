import { type AnyNode, type Pattern, parse } from 'acorn'
import { full } from 'acorn-walk'
import { transformSync } from 'esbuild'

/** The rows of the first table below a heading of a Markdown text, cell by cell. */
export function tableUnder(text: string, heading: string): string[][] {
  const lines = text.split('\n')
  // A heading may name a file after it: `### Keys (`core/…`)`.
  const start = lines.findIndex(line => line === heading || line.startsWith(`${heading} (`))
  const first = lines.findIndex((line, at) => start !== -1 && at > start && line.startsWith('|'))
  if (first === -1) throw new Error(`there is no table below ${heading}`)
  const length = lines.slice(first).findIndex(line => !line.startsWith('|'))
  return lines.slice(first + 2, length === -1 ? undefined : first + length).map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim())
  )
}

/** What a cell has in backquotes. */
export const namesIn = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

/** The places where code reads the environment of the process. */
export function environmentFaults(code: string): string[] {
  const javascript = transformSync(code, {
    loader: 'ts',
    format: 'esm',
    target: 'esnext',
    // Or imports of what is not used are left out.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } }
  }).code
  const faults: string[] = []
  full(parse(javascript, { ecmaVersion: 'latest', sourceType: 'module' }), node => {
    const fault = faultOf(node as AnyNode)
    if (fault !== null) faults.push(fault)
  })
  return faults
}

function faultOf(node: AnyNode): string | null {
  if (node.type === 'ImportDeclaration')
    return /^(?:node:)?process$/.test(String(node.source.value)) ? 'imports process' : null
  if (node.type === 'MemberExpression')
    return isProcess(node.object) && nameOf(node.property) === 'env' ? 'reads process.env' : null
  if (node.type === 'VariableDeclarator')
    return node.init != null && isProcess(node.init) && takesEnv(node.id) ? 'takes env of process' : null
  return null
}

const isProcess = (node: AnyNode): boolean =>
  (node.type === 'Identifier' && node.name === 'process') ||
  (node.type === 'MemberExpression' && nameOf(node.property) === 'process')

const nameOf = (node: AnyNode): string | undefined =>
  node.type === 'Identifier' ? node.name : node.type === 'Literal' ? String(node.value) : undefined

const takesEnv = (pattern: Pattern): boolean =>
  pattern.type === 'ObjectPattern' &&
  pattern.properties.some(property => property.type === 'Property' && nameOf(property.key) === 'env')
