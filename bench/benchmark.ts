/** A number with its unit, as the table prints it. */
export interface Figure {
  readonly value: number
  readonly unit: '' | 'µs' | 'ms' | 'KiB' | 'MiB' | '%'
}

/** What the design asks of a figure: of its ratio to the reference, or of the figure by itself. */
export interface Goal {
  readonly of: 'ratio' | 'ours'
  readonly atMost: number
}

/** One line of the table. */
export interface Row {
  readonly measure: string
  readonly ours: Figure
  readonly reference?: Figure
  /** The median of the ratios of all rounds, which is not the ratio of the two medians. */
  readonly ratio?: number
  /** Nothing where the figure is there to explain another. */
  readonly goal?: Goal
}

/** Everything that is measured for one goal of the design. It never throws because a goal is missed. */
export interface Benchmark {
  /** What it is called on the command line. */
  readonly name: string
  readonly title: string
  run(): Promise<readonly Row[]>
}

export const micros = (value: number): Figure => ({ value, unit: 'µs' })
export const millis = (value: number): Figure => ({ value, unit: 'ms' })
export const kibibytes = (value: number): Figure => ({ value, unit: 'KiB' })
export const mebibytes = (value: number): Figure => ({ value, unit: 'MiB' })
export const percent = (value: number): Figure => ({ value, unit: '%' })
export const count = (value: number): Figure => ({ value, unit: '' })
export const ratioAtMost = (atMost: number): Goal => ({ of: 'ratio', atMost })
export const oursAtMost = (atMost: number): Goal => ({ of: 'ours', atMost })
