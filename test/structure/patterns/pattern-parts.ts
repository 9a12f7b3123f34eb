import { type AST, RegExpParser, visitRegExpAST } from '@eslint-community/regexpp'
import type { Pattern } from './pattern-list.js'

/** Less often repeated, a part costs a constant whatever the text is. */
const manyTimes = 64

const nothing = { unicode: false, unicodeSets: false }

/**
 * The parts of a pattern that must be linear each, as searches of their own.
 *
 * - Alternatives at the top cost the sum of what each costs, so they are looked at one by one; what repeats
 *   nothing is not looked at.
 * - A pattern that is used again and again over one text (`g`, `y`) may cost too much though every single
 *   match is cheap: in `(?:\w|"(?:\\.|[^"\\])*")+` each `"` of `\"\"\"…` looks for its end through the whole
 *   rest, in vain, and then the match ends well before it. So what it may try and give up is looked at as if
 *   the pattern ended there.
 */
export function partsOf({ source, flags }: Pattern): Pattern[] {
  const mode = flags.includes('v')
    ? { ...nothing, unicodeSets: true }
    : flags.includes('u')
      ? { ...nothing, unicode: true }
      : nothing
  const ast = new RegExpParser({ ecmaVersion: 2025 }).parsePattern(source, 0, source.length, mode)
  const parts = new Set<Part>(ast.alternatives)
  if (/[gy]/.test(flags)) {
    visitRegExpAST(ast, {
      onAlternativeEnter: node => {
        parts.add(node)
      },
      onQuantifierEnter: node => {
        parts.add(node.element)
      },
      onAssertionEnter: node => {
        if ('alternatives' in node) parts.add(node)
      }
    })
  }
  const kept = flags.replace(/[dgy]/g, '')
  return [...parts].filter(mayTakeLong).map(part => ({ source: upTo(part), flags: kept }))
}

type Part = AST.Alternative | AST.QuantifiableElement | AST.LookaroundAssertion

/** What must match before the part, and the part. */
function upTo(part: Part): string {
  let source = part.raw
  for (let node: AST.Node = part; node.parent !== null; node = node.parent) {
    const around: AST.Node = node.parent
    if (around.type !== 'Alternative') continue
    const before = around.elements.slice(0, around.elements.indexOf(node as AST.Element))
    if (before.length > 0) source = `${before.map(({ raw }) => raw).join('')}(?:${source})`
  }
  return source
}

function mayTakeLong(part: Part): boolean {
  let mayTake = false
  visitRegExpAST(part, {
    onQuantifierEnter: ({ max }) => {
      mayTake ||= max >= manyTimes
    },
    onBackreferenceEnter: () => {
      mayTake = true
    }
  })
  return mayTake
}
