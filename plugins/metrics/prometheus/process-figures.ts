import { readdir } from 'node:fs/promises'
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { counter, gauge, type PrometheusFigure } from './figure.js'

/** How often it is looked whether the event loop is late. Each look wakes the process: at 20 ms an idle one spent a fifth of what it used on that. */
const resolutionMs = 100
const quantiles = [0.5, 0.9, 0.99] as const

const secondsOf = (nanoseconds: number): number => (Number.isFinite(nanoseconds) ? nanoseconds / 1e9 : 0)

/** What is known of a Node process, under the names that are usual. */
export class ProcessFigures {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs })

  start(): void {
    this.#delay.enable()
  }

  stop(): void {
    this.#delay.disable()
  }

  async read(): Promise<PrometheusFigure[]> {
    const { user, system } = process.cpuUsage()
    const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
    return [
      counter('process_cpu_user_seconds_total', 'Processor time in user mode', user / 1e6),
      counter('process_cpu_system_seconds_total', 'Processor time in the kernel of the system', system / 1e6),
      counter('process_cpu_seconds_total', 'Processor time', (user + system) / 1e6),
      gauge(
        'process_start_time_seconds',
        'When the process was started, in seconds since 1970',
        Math.round(performance.timeOrigin) / 1000
      ),
      gauge('process_resident_memory_bytes', 'Memory of the process', rss),
      gauge('nodejs_heap_size_total_bytes', 'Size of the heap of JavaScript', heapTotal),
      gauge('nodejs_heap_size_used_bytes', 'What of it is used', heapUsed),
      gauge('nodejs_external_memory_bytes', 'Memory of objects of JavaScript outside of the heap', external),
      ...(await openFiles()),
      ...this.#lag(),
      gauge('nodejs_version_info', 'The version of Node', [
        { labels: { version: process.version }, value: 1 }
      ])
    ]
  }

  /** Since the last time that it was asked for. */
  #lag(): PrometheusFigure[] {
    const delay = this.#delay
    // What is measured is the time between two looks.
    const lagOf = (nanoseconds: number): number => Math.max(0, secondsOf(nanoseconds) - resolutionMs / 1000)
    const figures = [
      gauge(
        'nodejs_eventloop_lag_mean_seconds',
        'How late the event loop was since the last scrape, on average',
        lagOf(delay.mean)
      ),
      gauge('nodejs_eventloop_lag_max_seconds', 'How late it was at most', lagOf(delay.max)),
      ...quantiles.map(quantile =>
        gauge(
          `nodejs_eventloop_lag_p${quantile * 100}_seconds`,
          `In ${quantile * 100} of 100 times it was not later than that`,
          lagOf(delay.count === 0 ? 0 : delay.percentile(quantile * 100))
        )
      )
    ]
    delay.reset()
    return figures
  }
}

/** Nothing where the system does not tell. */
async function openFiles(): Promise<PrometheusFigure[]> {
  const open = await readdir('/proc/self/fd').catch(() => undefined)
  return open === undefined
    ? []
    : [gauge('process_open_fds', 'Files and sockets that the process has open', open.length)]
}
