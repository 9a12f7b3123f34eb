import type { Figure, Goal, Row } from './benchmark.js'

const heads = ['measure', 'ours', 'reference', 'ratio', 'goal', ''] as const

/** Prints the rows of one benchmark in columns. */
export function printTable(title: string, rows: readonly Row[]): void {
  const lines = [[...heads], ...rows.map(cells)]
  const widths = heads.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)))
  console.log(`\n${title}`)
  for (const line of lines) {
    console.log(
      `  ${line.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')}`
    )
  }
}

const cells = ({ measure, ours, reference, ratio, goal }: Row): string[] => [
  measure,
  figureText(ours),
  reference === undefined ? '' : figureText(reference),
  ratio === undefined ? '' : `× ${ratio.toFixed(2)}`,
  goal === undefined ? '' : goalText(goal, ours.unit),
  goal === undefined ? '' : isMet(goal, ours, ratio) ? 'met' : 'NOT met'
]

function figureText({ value, unit }: Figure): string {
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`
}

const goalText = ({ of, atMost }: Goal, unit: Figure['unit']): string =>
  of === 'ratio' ? `≤ × ${atMost.toFixed(2)}` : `≤ ${atMost}${unit === '' ? '' : ` ${unit}`}`

const isMet = ({ of, atMost }: Goal, ours: Figure, ratio: number | undefined): boolean =>
  (of === 'ratio' ? (ratio ?? Number.NaN) : ours.value) <= atMost
