import { Child } from './child.js'
import type { LoadCommands, LoadOptions, LoadResult } from './load-generator.js'
import { cpuMicros } from './process-usage.js'

/** The process that sends requests. */
export type LoadGenerator = Child<null, LoadCommands>

export const startLoadGenerator = async (): Promise<LoadGenerator> =>
  await Child.start(new URL('./load-generator.js', import.meta.url))

export interface Cost extends LoadResult {
  /** What a request cost the process that answered it. */
  readonly cpuMicros: number
}

/** Runs a load and looks at what the server used meanwhile. */
export async function costOf(
  server: { readonly pid: number },
  generator: LoadGenerator,
  options: LoadOptions
): Promise<Cost> {
  const before = cpuMicros(server.pid)
  const result = await generator.ask('load', options)
  return { ...result, cpuMicros: (cpuMicros(server.pid) - before) / result.requests }
}
