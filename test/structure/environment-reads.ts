import type { AnyNode, Pattern } from 'acorn'
import { full } from 'acorn-walk'
import { parseTypeScript } from './syntax-tree.js'

/** The places where code reads the environment of the process. */
export function environmentFaults(code: string): string[] {
  const faults: string[] = []
  full(parseTypeScript(code).program, node => {
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
