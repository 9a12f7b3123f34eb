import {
  isArrowFunction,
  isAwaitExpression,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isExpressionStatement,
  isIfStatement,
  isNewExpression,
  isNumericLiteral,
  isPrefixUnaryExpression,
  isPropertyAssignment,
  isReturnStatement,
  isThrowStatement,
  isVoidExpression,
  isWhileStatement,
  type Node,
  SyntaxKind
} from 'typescript/unstable/ast'

/** One small defect in one file. */
export interface Mutant {
  readonly file: string
  /** From one. */
  readonly line: number
  /** What is replaced, as offsets into the source. */
  readonly start: number
  readonly end: number
  readonly replacement: string
  /** For people: `a < b → a <= b`. */
  readonly change: string
  /** The line without its indentation. */
  readonly text: string
  /** Where the program has to come by for the defect to be noticed, as an offset. */
  readonly reach: number
}

const swapped: ReadonlyMap<SyntaxKind, string> = new Map([
  [SyntaxKind.LessThanToken, '<='],
  [SyntaxKind.LessThanEqualsToken, '<'],
  [SyntaxKind.GreaterThanToken, '>='],
  [SyntaxKind.GreaterThanEqualsToken, '>'],
  [SyntaxKind.AmpersandAmpersandToken, '||'],
  [SyntaxKind.BarBarToken, '&&'],
  [SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [SyntaxKind.PlusToken, '-'],
  [SyntaxKind.MinusToken, '+'],
  [SyntaxKind.AsteriskToken, '/'],
  [SyntaxKind.SlashToken, '*'],
  [SyntaxKind.PlusEqualsToken, '-='],
  [SyntaxKind.MinusEqualsToken, '+=']
])

const ofTypes: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.ImportDeclaration,
  SyntaxKind.ExportDeclaration,
  SyntaxKind.TypeParameter,
  SyntaxKind.ModuleDeclaration
])

/** What is only told to people: log lines, messages of errors, examples of the API's description. Its text is nobody's contract. */
const isTold = (node: Node, source: string): boolean =>
  (isPropertyAssignment(node) && textOf(node.name, source) === 'examples') ||
  (isCallExpression(node) &&
    /(?:^|[.#?])(?:log|logger|console|stderr|stdout)\??\.\w+$/.test(textOf(node.expression, source))) ||
  (isNewExpression(node) && /Error$/.test(textOf(node.expression, source)))

const isText = (node: Node): boolean =>
  node.kind === SyntaxKind.StringLiteral ||
  node.kind === SyntaxKind.NoSubstitutionTemplateLiteral ||
  node.kind === SyntaxKind.TemplateExpression ||
  (isBinaryExpression(node) && (isText(node.left) || isText(node.right)))

const startOf = (node: Node): number => node.getStart()
const textOf = (node: Node, source: string): string => source.slice(startOf(node), node.end)

/** Every defect that this program knows to put into a file, in the order of the source. */
export function mutantsOf(file: string, root: Node, source: string): Mutant[] {
  const found: Mutant[] = []
  const add = (node: Node, replacement: string, reach = startOf(node), whole: Node = node): void => {
    const start = startOf(node)
    const before = startOf(whole)
    const was = source.slice(before, whole.end)
    const is = source.slice(before, start) + replacement + source.slice(node.end, whole.end)
    const lineStart = source.lastIndexOf('\n', start - 1) + 1
    const lineEnd = source.indexOf('\n', start)
    found.push({
      file,
      line: source.slice(0, start).split('\n').length,
      start,
      end: node.end,
      replacement,
      change: `${short(was)} → ${is === nothing ? '(nothing)' : short(is)}`,
      text: source.slice(lineStart, lineEnd < 0 ? undefined : lineEnd).trim(),
      reach
    })
  }
  const visit = (node: Node): void => {
    if (ofTypes.has(node.kind) || isTypeKind(node.kind) || isTold(node, source)) return
    for (const [part, replacement, reach, whole] of changesOf(node, source))
      add(part, replacement, reach, whole)
    node.forEachChild(visit)
  }
  visit(root)
  return found
}

const isTypeKind = (kind: SyntaxKind): boolean =>
  kind >= SyntaxKind.FirstTypeNode && kind <= SyntaxKind.LastTypeNode

type Change = readonly [part: Node, replacement: string, reach?: number, whole?: Node]

function* changesOf(node: Node, source: string): Generator<Change> {
  if (isIfStatement(node) || isWhileStatement(node)) {
    yield* negated(node.expression, source)
    if (isIfStatement(node) && node.elseStatement === undefined && leaves(node.thenStatement))
      yield [node.expression, 'false']
  } else if (isConditionalExpression(node)) yield* negated(node.condition, source)
  else if (isBinaryExpression(node)) yield* ofOperator(node, source)
  else if (isNumericLiteral(node)) yield* ofNumber(node, source)
  else if (node.kind === SyntaxKind.TrueKeyword) yield [node, 'false']
  else if (node.kind === SyntaxKind.FalseKeyword) yield [node, 'true']
  else if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
    yield [node, textOf(node.operand, source)]
  else if (isExpressionStatement(node)) {
    const call = inner(node.expression)
    if (isCallExpression(call) && !isTold(call, source)) yield [node, nothing]
  } else if (isArrowFunction(node) && !isBlock(node.body)) {
    // `() => this.#release()`: a call that is all there is to do.
    if (/^(?:\(\)|\(\w+\)|\w+) => void /.test(textOf(node, source))) yield [node.body, nothing]
  }
}

/** A comparison is covered by its own operator, and `!x` by losing its sign. */
function* negated(condition: Node, source: string): Generator<Change> {
  if (isPrefixUnaryExpression(condition)) return
  if (
    isBinaryExpression(condition) &&
    (condition.operatorToken.kind === SyntaxKind.EqualsEqualsEqualsToken ||
      condition.operatorToken.kind === SyntaxKind.ExclamationEqualsEqualsToken)
  )
    return
  yield [condition, `!(${textOf(condition, source)})`]
}

function* ofOperator(
  node: Node & { readonly left: Node; readonly right: Node; readonly operatorToken: Node },
  source: string
): Generator<Change> {
  const { left, right, operatorToken } = node
  const { kind } = operatorToken
  if (kind === SyntaxKind.QuestionQuestionToken) {
    yield [node, textOf(left, source), startOf(right)]
    yield [node, `(${textOf(right, source)})`, startOf(left)]
    return
  }
  const other = swapped.get(kind)
  if (other === undefined || (kind === SyntaxKind.PlusToken && isText(node))) return
  // `a && b || c` and `a ?? (b || c)` keep their meaning besides by parentheses of their own.
  if (kind === SyntaxKind.AmpersandAmpersandToken || kind === SyntaxKind.BarBarToken)
    yield [node, `((${textOf(left, source)}) ${other} (${textOf(right, source)}))`, startOf(left)]
  else yield [operatorToken, other, startOf(left), node]
}

function* ofNumber(node: Node, source: string): Generator<Change> {
  const text = textOf(node, source)
  const value = Number(text.replaceAll('_', ''))
  if (!Number.isSafeInteger(value)) return
  // One more or less of a time limit or a buffer is nobody's contract; whether there is any is.
  if (value > 10) yield [node, '0']
  else yield [node, String(value + 1)]
  if (value > 0 && value <= 10) yield [node, String(value - 1)]
}

const nothing = 'void 0'
/** What `await` or `void` stands before. */
const inner = (node: Node): Node =>
  isAwaitExpression(node) || isVoidExpression(node) ? inner(node.expression) : node

/** `return`, `continue`, `break` or `throw`, alone or at the end of a block. */
function leaves(statement: Node): boolean {
  if (isBlock(statement)) {
    const last = statement.statements.at(-1)
    return last !== undefined && leaves(last)
  }
  return (
    isReturnStatement(statement) ||
    isThrowStatement(statement) ||
    statement.kind === SyntaxKind.ContinueStatement ||
    statement.kind === SyntaxKind.BreakStatement
  )
}

const short = (text: string): string => {
  const line = text
    .split('\n')
    .map(part => part.trim())
    .join(' ')
  return line.length > 70 ? `${line.slice(0, 45)} … ${line.slice(-20)}` : line
}
