import type { AnyNode } from 'acorn'
import { simple } from 'acorn-walk'
import { parseTypeScript } from '../syntax-tree.js'

/** A regular expression as it stands in a file. */
export interface Pattern {
  readonly source: string
  readonly flags: string
}

interface FoundPatterns {
  readonly patterns: readonly Pattern[]
  /** `new RegExp` of a text that is known only when the program runs, as it is written. */
  readonly built: readonly string[]
}

/**
 * The regular expressions of a module: literals, `RegExp` of a constant text, and the `pattern` members of
 * JSON schemas, which the validator compiles.
 */
export function patternsIn(code: string, loader: 'ts' | 'js'): FoundPatterns {
  const { javascript, program } = parseTypeScript(code, loader)
  const patterns: Pattern[] = []
  const built: string[] = []
  const construct = (
    { callee, arguments: [text, flags] }: { callee: AnyNode; arguments: AnyNode[] },
    written: string
  ): void => {
    if (callee.type !== 'Identifier' || callee.name !== 'RegExp') return
    const source = constantText(text)
    const mode = flags === undefined ? '' : constantText(flags)
    if (source === undefined || mode === undefined) built.push(written)
    else patterns.push({ source, flags: mode })
  }
  simple(program, {
    Literal({ regex }) {
      if (regex != null) patterns.push({ source: regex.pattern, flags: regex.flags })
    },
    NewExpression(node) {
      construct(node as never, javascript.slice(node.start, node.end))
    },
    CallExpression(node) {
      construct(node as never, javascript.slice(node.start, node.end))
    },
    Property({ key, value }) {
      const name = key.type === 'Identifier' ? key.name : key.type === 'Literal' ? key.value : undefined
      const source = name === 'pattern' ? constantText(value) : undefined
      // The flag with which the validator compiles it.
      if (source !== undefined) patterns.push({ source, flags: 'u' })
    }
  })
  return { patterns, built }
}

function constantText(node: AnyNode | undefined): string | undefined {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node?.type === 'TemplateLiteral' && node.expressions.length === 0)
    return node.quasis[0]?.value.cooked ?? undefined
  return undefined
}
