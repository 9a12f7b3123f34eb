import { type ContainerRuntime, machineFactsMs } from 'busbar/api/containers'
import { bounded } from 'busbar/sdk'
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

const limitMs = 2000

/** How many cores containers can have; undefined while the engine does not say. */
export async function readCores(engine: ContainerRuntime | undefined): Promise<number | undefined> {
  if (engine === undefined) return undefined
  const info = bounded(async () => await engine.info({ maxAgeMs: machineFactsMs }), {
    ms: limitMs,
    what: 'the container engine'
  })
  return await info.then(
    ({ cores }) => cores,
    () => undefined
  )
}
