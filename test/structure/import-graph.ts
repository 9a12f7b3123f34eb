import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import {
  type Expression,
  isCallExpression,
  isExportDeclaration,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isStringLiteral,
  type Node,
  SyntaxKind
} from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'

/** One import of one file, whatever its syntax: static, `export … from`, dynamic, or in a type. */
export interface Import {
  /** Relative to the project's root: `core/http/edge.ts`. */
  readonly from: string
  readonly specifier: string
  /** The file it leads to, relative to the root; null for a package and for what does not exist. */
  readonly to: string | null
  /** Nothing is left of it at run time. `import { type X }` still loads the module. */
  readonly isTypeOnly: boolean
}

interface SourceFile {
  readonly path: string
  readonly lines: number
}

/** Reads every file of tsconfig.json with the compiler's own parser. */
export function readImportGraph(root: string): { files: SourceFile[]; imports: Import[] } {
  const api = new API({ cwd: root })
  try {
    const project = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()[0]
    if (project === undefined) throw new Error(`${root} has no TypeScript project`)
    const files: SourceFile[] = []
    const imports: Import[] = []
    for (const absolute of project.rootFiles) {
      const source = project.program.getSourceFile(absolute)
      if (source === undefined) throw new Error(`the compiler did not read ${absolute}`)
      const from = relative(root, absolute)
      const lines = source.text.split('\n').slice(0, -1)
      files.push({ path: from, lines: lines.length })
      for (const { specifier, isTypeOnly } of specifiersIn(source)) {
        imports.push({ from, specifier, to: resolveSpecifier(root, from, specifier), isTypeOnly })
      }
    }
    return { files, imports }
  } finally {
    api.close()
  }
}

interface Specifier {
  readonly specifier: string
  readonly isTypeOnly: boolean
}

function specifiersIn(source: Node): Specifier[] {
  const found: Specifier[] = []
  const note = (name: Expression | undefined, isTypeOnly: boolean) => {
    if (name !== undefined && isStringLiteral(name)) found.push({ specifier: name.text, isTypeOnly })
  }
  const visit = (node: Node): void => {
    if (isImportDeclaration(node))
      note(node.moduleSpecifier, node.importClause?.phaseModifier === SyntaxKind.TypeKeyword)
    else if (isExportDeclaration(node)) note(node.moduleSpecifier, node.isTypeOnly)
    else if (isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword)
      note(node.arguments[0], false)
    else if (isImportTypeNode(node) && isLiteralTypeNode(node.argument))
      note(node.argument.literal as Expression, true)
    node.forEachChild(visit)
  }
  visit(source)
  return found
}

const entries: Readonly<Record<string, string>> = {
  'busbar/sdk': 'sdk/index.ts',
  'busbar/sdk/age': 'sdk/age/index.ts',
  'busbar/sdk/disk': 'sdk/disk/index.ts',
  'busbar/sdk/http1': 'sdk/http1/index.ts',
  'busbar/sdk/s3': 'sdk/s3/index.ts',
  'busbar/sdk/tar': 'sdk/tar/index.ts',
  'busbar/sdk/testing': 'sdk/testing/index.ts',
  'busbar/client': 'sdk/client/index.ts'
}

/** The package's own names as `exports` in package.json has them, and relative paths. */
function resolveSpecifier(root: string, from: string, specifier: string): string | null {
  const plugin = /^busbar\/api\/([^/]+)$/.exec(specifier)?.[1]
  const path =
    entries[specifier] ??
    (plugin !== undefined
      ? `plugins/${plugin}/api.ts`
      : specifier.startsWith('.')
        ? join(dirname(from), specifier).replace(/\.js$/, '.ts')
        : null)
  return path !== null && existsSync(join(root, path)) ? path : null
}

/** Groups of files that import each other in a circle at run time, each group once. */
export function findCycles(imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>()
  for (const { from, to, isTypeOnly } of imports) {
    if (to !== null && !isTypeOnly) next.set(from, [...(next.get(from) ?? []), to])
  }
  // Tarjan's strongly connected components
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[][] = []
  const connect = (file: string): number => {
    const own = index.size
    index.set(file, own)
    let lowest = own
    stack.push(file)
    for (const to of next.get(file) ?? []) {
      const seen = index.get(to)
      if (seen === undefined) lowest = Math.min(lowest, connect(to))
      else if (stack.includes(to)) lowest = Math.min(lowest, low.get(to) ?? seen)
    }
    low.set(file, lowest)
    if (lowest === own) {
      const component = stack.splice(stack.indexOf(file))
      if (component.length > 1 || (next.get(file) ?? []).includes(file)) cycles.push(component.sort())
    }
    return lowest
  }
  for (const file of next.keys()) if (!index.has(file)) connect(file)
  return cycles
}
