import { askOrLeaveOut, type Contributions, type Log } from 'busbar/sdk'
import type { Figure, FigureSource, FigureValue } from '../api.js'
import type { PrometheusFigure } from './figure.js'

const limitMs = 5_000
const mostFigures = 200
const mostValues = 1_000
const longestText = 500

const namePattern = /^[a-z][a-z0-9_]{0,99}$/
const labelPattern = /^[a-z][a-z0-9_]{0,49}$/

interface ContributedParts {
  readonly sources: Contributions<FigureSource>
  /** Whether a plugin is part of the platform. */
  readonly isBuiltIn: (plugin: string) => boolean
  readonly log: Log
}

/** What other plugins tell of themselves. One that fails, or tells what cannot be taken, is left out, and the log names it. */
export async function contributedFigures({
  sources,
  isBuiltIn,
  log
}: ContributedParts): Promise<PrometheusFigure[]> {
  const answers = await Promise.all(
    sources.entries().map(async entry => ({
      plugin: entry.plugin,
      figures:
        (await askOrLeaveOut(entry, value => value.figures(), {
          what: 'the figures',
          takes: `a list of at most ${mostFigures} figures with ${mostValues} values, each with a name, a help, a type and numbers`,
          take: takeFigures,
          ms: limitMs,
          log
        })) ?? []
    }))
  )
  const named = answers.flatMap(({ plugin, figures }) => {
    const prefix = isBuiltIn(plugin) ? 'busbar_' : `busbar_x_${plugin.replaceAll('-', '_')}_`
    return figures.map(figure => ({ ...figure, name: `${prefix}${figure.name}` }))
  })
  // The first of a name counts.
  return [...new Map(named.reverse().map(figure => [figure.name, figure])).values()].reverse()
}

/** What counts of an answer, as objects of our own; undefined where one part of it cannot be taken. */
export function takeFigures(answer: unknown): Figure[] | undefined {
  if (!Array.isArray(answer) || answer.length > mostFigures) return undefined
  const figures = (answer as unknown[]).map(takeFigure)
  const taken = figures.filter(figure => figure !== undefined)
  const count = taken.reduce((sum, { values }) => sum + values.length, 0)
  return taken.length === figures.length && count <= mostValues ? taken : undefined
}

function takeFigure(given: unknown): Figure | undefined {
  if (!isObject(given)) return undefined
  const { name, help, type, values } = given
  if (typeof name !== 'string' || !namePattern.test(name) || !isText(help)) return undefined
  if ((type !== 'counter' && type !== 'gauge') || !Array.isArray(values) || values.length > mostValues)
    return undefined
  const taken = (values as unknown[]).map(takeValue).filter(value => value !== undefined)
  // With two of the same labels Prometheus takes neither, and stricter readers nothing of the whole text.
  const isGood = taken.length === values.length && new Set(taken.map(seriesOf)).size === taken.length
  return isGood ? { name, help: withoutControls(help), type, values: taken } : undefined
}

/** What tells a value of a figure from its others. */
const seriesOf = ({ labels = {} }: FigureValue): string =>
  JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))

function takeValue(given: unknown): FigureValue | undefined {
  if (!isObject(given)) return undefined
  const { value, labels = {} } = given
  if (typeof value !== 'number' || !Number.isFinite(value) || !isObject(labels)) return undefined
  const entries = Object.entries(labels)
  const isGood =
    entries.length <= 10 && entries.every(([name, text]) => labelPattern.test(name) && isText(text))
  if (!isGood) return undefined
  const shown = (entries as Array<[string, string]>).map(
    ([name, text]) => [name, withoutControls(text)] as const
  )
  return { value, labels: Object.fromEntries(shown) }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= longestText

/** Ends of lines are escaped; other control characters are no good to whom the text is shown. */
const withoutControls = (text: string): string =>
  text.toWellFormed().replace(/[\0-\x09\x0b-\x1f\x7f-\x9f]/g, '\ufffd')
