import { maybe, object, Type, type Static } from 'busbar/sdk'
import { availableParallelism, totalmem } from 'node:os'

/** What an operator may set; absent values follow the machine. */
export const settings = object({
  memory_mib: maybe(Type.Integer({ minimum: 128, description: 'Memory a build may use, MiB; 60 % of the machine, at least 512, unless set' })),
  cpus: maybe(Type.Number({ minimum: 0.1, description: 'Cores a build may use; all but half a core unless set' })),
  checkout_mib: Type.Integer({ minimum: 1, default: 2048, description: 'How large a checked-out repository may be, MiB' })
})

/** The hard caps of one build. */
export interface BuildLimits { readonly memoryBytes: number, readonly cpus: number }

const mebibyte = 2 ** 20
const leastMemoryBytes = 512 * mebibyte
const memoryShare = 0.6

export function buildLimits (
  config: Static<typeof settings>,
  machine: { readonly memoryBytes: number, readonly cores: number } = { memoryBytes: totalmem(), cores: availableParallelism() }
): BuildLimits {
  const { memory_mib: memory, cpus } = config
  return {
    memoryBytes: memory === undefined ? Math.max(leastMemoryBytes, Math.floor(machine.memoryBytes * memoryShare)) : memory * mebibyte,
    cpus: Math.min(machine.cores, cpus ?? machine.cores - 0.5)
  }
}

/** A number of minutes from the environment; what is no positive number counts as absent. */
export function minutes (value: string | undefined, fallback: number): number {
  const number = Number(value)
  return value !== undefined && Number.isFinite(number) && number > 0 ? number : fallback
}
