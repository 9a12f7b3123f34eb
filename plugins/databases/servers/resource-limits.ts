import { type ContainerRuntime, machineFactsMs } from 'busbar/api/containers'
import { bounded } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { UpdateBody } from '../schemas.js'

/** Docker Engine starts no container with less. */
const leastMemoryBytes = 6 * 2 ** 20
const leastCores = 0.01
const limitMs = 2000
/** As containers usually have it. */
const processes = 4096

interface Limits {
  readonly cpu_limit: number
  readonly memory_limit: number
}

/** Without `cores`, the machine's are not known. */
export function checkLimits(
  { cpu_limit: cpu = 0, memory_limit: memory = 0 }: UpdateBody,
  cores?: number
): void {
  if (memory > 0 && memory < leastMemoryBytes)
    throw problems.invalid({
      field: 'memory_limit',
      reason: `must be ${leastMemoryBytes} bytes (6 MiB) or more, or 0 for no limit`
    })
  if (cpu > 0 && cpu < leastCores)
    throw problems.invalid({
      field: 'cpu_limit',
      reason: `must be ${leastCores} cores or more, or 0 for no limit`
    })
  if (cores !== undefined && cpu > cores)
    throw problems.invalid({
      field: 'cpu_limit',
      reason: `must be ${cores} or less, as the machine has ${cores} cores, or 0 for no limit`
    })
}

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

/**
 * Of a container that runs, at once; false where it does not run, or ends meanwhile, which nothing can be limited in. An engine may
 * refuse what is less than the server has taken already.
 */
export async function limitRunning(
  engine: ContainerRuntime,
  containerId: string,
  limits: Limits
): Promise<boolean> {
  const before = await engine.inspect(containerId)
  if (before?.status !== 'running') return false
  try {
    await applyLimits(engine, containerId, limits)
    return true
  } catch (error) {
    const seen = await engine.inspect(containerId)
    if (seen?.status === 'running' && seen.startedAt === before.startedAt) throw error
    return false
  }
}

/** A container that runs cannot be given no limit: it gets what the machine has. */
async function applyLimits(engine: ContainerRuntime, containerId: string, limits: Limits): Promise<void> {
  const { cores, memoryBytes } = await engine.info({ maxAgeMs: machineFactsMs })
  await engine.setCaps(containerId, {
    cpus: limits.cpu_limit > 0 ? limits.cpu_limit : cores,
    memoryBytes: limits.memory_limit > 0 ? limits.memory_limit : memoryBytes,
    processes
  })
}
