import type { ContainerRuntime } from 'busbar/api/containers'
import { bounded, type Clock } from 'busbar/sdk'
import { invalid } from './problems.js'
import type { ResourcesBody } from './schemas.js'

/** Docker Engine starts no container with less. */
const leastMemoryBytes = 6 * 2 ** 20
const leastCores = 0.01

/** Refuses limits with which no container would start: better now than after a whole build. Without `cores`, the machine's are not known. */
export function checkLimits(
  { cpu_limit: cpu = 0, memory_limit: memory = 0 }: ResourcesBody,
  cores?: number
): void {
  if (memory > 0 && memory < leastMemoryBytes)
    throw invalid('memory_limit', `must be ${leastMemoryBytes} bytes (6 MiB) or more, or 0 for no limit`)
  if (cpu > 0 && cpu < leastCores)
    throw invalid('cpu_limit', `must be ${leastCores} cores or more, or 0 for no limit`)
  if (cores !== undefined && cpu > cores)
    throw invalid(
      'cpu_limit',
      `must be ${cores} or less, as the machine has ${cores} cores, or 0 for no limit`
    )
}

const knownForMs = 60_000
const limitMs = 2000

/** How many cores containers can have, asked of the engine once a minute at most. */
export class MachineCores {
  #known: { readonly cores: number; readonly at: number } | undefined

  constructor(
    private readonly parts: {
      readonly runtime: { get(): ContainerRuntime | undefined }
      readonly clock: Clock
    }
  ) {}

  /** Undefined while the engine does not say. */
  async read(): Promise<number | undefined> {
    const { runtime, clock } = this.parts
    const now = clock.now().getTime()
    if (this.#known !== undefined && now - this.#known.at < knownForMs) return this.#known.cores
    const engine = runtime.get()
    if (engine === undefined) return undefined
    const facts = await bounded(async () => await engine.info(), {
      ms: limitMs,
      what: 'the container engine'
    }).catch(() => undefined)
    if (facts === undefined) return undefined
    this.#known = { cores: facts.cores, at: now }
    return facts.cores
  }
}
