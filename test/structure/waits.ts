import type { AnyNode, CallExpression } from 'acorn'
import { ancestor } from 'acorn-walk'
import { parseTypeScript } from './syntax-tree.js'

/** A wait of a test that has no limit, or that a fixed time ends. */
export interface WaitFault {
  readonly kind: 'polls without a limit' | 'sleeps'
  /** The statement, in one line and without its types. */
  readonly code: string
}

const testFunctions = new Set(['test', 'engineTest', 'it'])

/**
 * - A loop that asks and sleeps needs an end of its own: it looks at a clock, or counts. One that runs beside the test
 *   until a flag ends it (`while (!isOver)`) is no wait.
 * - A sleep in the flow of a test stands for something that it should wait for. In a helper, a handler or a stand-in it
 *   is the work that takes time.
 */
export function waitFaults(code: string): WaitFault[] {
  const { javascript, program } = parseTypeScript(code)
  const faults: WaitFault[] = []
  const text = ({ start, end }: AnyNode): string =>
    javascript.slice(start, end).replaceAll(/\s+/g, ' ').slice(0, 120)
  const sleepers = sleepFunctions(javascript)
  const isSleep = (node: AnyNode): boolean =>
    node.type === 'CallExpression'
      ? node.callee.type === 'Identifier' && sleepers.has(node.callee.name) && node.arguments.length < 3
      : node.type === 'NewExpression' &&
        node.callee.type === 'Identifier' &&
        node.callee.name === 'Promise' &&
        /^new Promise\(\(?(\w+)\)? => setTimeout\(\1,/.test(text(node))

  ancestor(program, {
    AwaitExpression(node, _state, ancestors) {
      if (!isSleep(node.argument)) return
      const within = ancestors.slice(0, -1) as AnyNode[]
      const loop = within.findLast(isLoop)
      const around = within.findLast(isFunction)
      if (loop !== undefined && (around === undefined || within.indexOf(loop) > within.indexOf(around))) {
        if (!hasLimit(loop, javascript)) faults.push({ kind: 'polls without a limit', code: text(loop) })
      } else if (around === undefined || isTest(within, around))
        faults.push({ kind: 'sleeps', code: text(node) })
    }
  })
  return faults
}

/** The names under which a module has the promises of timers. */
const sleepFunctions = (javascript: string): ReadonlySet<string> =>
  new Set(
    [...javascript.matchAll(/import \{([^}]*)\} from "(?:node:)?timers\/promises"/g)].flatMap(([, names]) =>
      [...(names ?? '').matchAll(/\bsetTimeout(?: as (\w+))?/g)].map(([, name]) => name ?? 'setTimeout')
    )
  )

type Loop = Extract<AnyNode, { type: 'WhileStatement' | 'DoWhileStatement' | 'ForStatement' }>

const isLoop = (node: AnyNode): node is Loop =>
  node.type === 'WhileStatement' || node.type === 'DoWhileStatement' || node.type === 'ForStatement'

const isFunction = (node: AnyNode): boolean =>
  node.type === 'ArrowFunctionExpression' ||
  node.type === 'FunctionExpression' ||
  node.type === 'FunctionDeclaration'

/** It looks at a clock, counts, or goes on until a flag says that the test is over. */
function hasLimit(loop: Loop, javascript: string): boolean {
  if (/\b(?:performance|Date)\.now\(\)/.test(javascript.slice(loop.start, loop.end))) return true
  if (loop.type === 'ForStatement' && loop.update != null) return true
  const condition = loop.test
  const flag = condition?.type === 'UnaryExpression' ? condition.argument : condition
  return flag?.type === 'Identifier'
}

function isTest(within: readonly AnyNode[], callback: AnyNode): boolean {
  const call = within[within.indexOf(callback) - 1]
  return call?.type === 'CallExpression' && call.arguments.includes(callback as never) && isTestCall(call)
}

function isTestCall({ callee }: CallExpression): boolean {
  if (callee.type === 'Identifier') return testFunctions.has(callee.name)
  return (
    callee.type === 'MemberExpression' &&
    callee.property.type === 'Identifier' &&
    testFunctions.has(callee.property.name)
  )
}
