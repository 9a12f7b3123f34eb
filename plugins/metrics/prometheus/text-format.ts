import { createRequire } from 'node:module'
import type { PrometheusFigure } from './figure.js'

/** What is used of prom-client's registry. */
interface TextRegistry {
  readonly contentType: string
  /** Throws where one of that name is there already. */
  registerMetric(metric: { readonly name: string; get(): Promise<object> }): void
  metrics(): Promise<string>
}

const require = createRequire(import.meta.url)

/**
 * Of the library this module alone is loaded, and on first use: the figures are counted by those who have them, and its own
 * counters would bring OpenTelemetry along, which takes ten times as long to load, and 10 MiB.
 */
const newRegistry = (): TextRegistry =>
  new (require('prom-client/lib/registry.js') as new () => TextRegistry)()

/** In the text format of Prometheus. Figures of one name must not be there twice. */
export async function prometheusText(
  figures: readonly PrometheusFigure[]
): Promise<{ readonly text: string; readonly type: string }> {
  const registry = newRegistry()
  for (const figure of figures)
    registry.registerMetric({ name: figure.name, get: async () => ({ ...figure, aggregator: 'sum' }) })
  return { text: await registry.metrics(), type: registry.contentType }
}
