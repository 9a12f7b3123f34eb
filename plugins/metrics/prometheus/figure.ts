/** One line of the text: a value under the name of its figure, or under another one, as parts of a histogram have. */
export interface Sample {
  readonly value: number
  readonly labels?: Readonly<Record<string, string>>
  readonly metricName?: string
}

/** A figure as Prometheus gets it. */
export interface PrometheusFigure {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly values: readonly Sample[]
}

export const counter = (
  name: string,
  help: string,
  values: number | readonly Sample[]
): PrometheusFigure => ({
  name,
  help,
  type: 'counter',
  values: samplesOf(values)
})

export const gauge = (name: string, help: string, values: number | readonly Sample[]): PrometheusFigure => ({
  name,
  help,
  type: 'gauge',
  values: samplesOf(values)
})

const samplesOf = (values: number | readonly Sample[]): readonly Sample[] =>
  typeof values === 'number' ? [{ value: values }] : values

/** What has been counted by its size. */
interface Counted {
  readonly labels: Readonly<Record<string, string>>
  /** For each bound how many are at most as large, and larger than the one before; the last is of those beyond all bounds. */
  readonly counts: readonly number[]
  readonly sum: number
}

export const histogram = (
  name: string,
  help: string,
  bounds: readonly number[],
  series: readonly Counted[]
): PrometheusFigure => ({
  name,
  help,
  type: 'histogram',
  values: series.flatMap(({ labels, counts, sum }) => {
    let soFar = 0
    const buckets = [...bounds.map(String), '+Inf'].map((le, at) => {
      soFar += counts[at] ?? 0
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: soFar }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: soFar }
    ]
  })
})
