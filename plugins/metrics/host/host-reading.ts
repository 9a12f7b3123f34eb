/** Time of all processors since the machine was started, in units of the same length. */
export interface CpuTimes {
  readonly busy: number
  readonly total: number
}

/** Bytes. */
export interface Space {
  readonly used: number
  readonly total: number
}

/** What was read of the machine; null where it could not be. */
export interface HostReading {
  readonly cpu: CpuTimes | null
  readonly memory: Space | null
  readonly swap: Space | null
  /** Of the file system that has `/`. */
  readonly disk: Space | null
}

export interface HostPoint {
  readonly recordedAt: Date
  /** Of all processors together: 0 to 100. Null where it is not known. */
  readonly cpuPercent: number | null
  readonly memory: Space | null
  readonly swap: Space | null
  readonly disk: Space | null
}

/** Linux counts time of guests as time of users as well. What waits for a disk is idle. */
const cpuFields = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const
const idleFields: readonly string[] = ['idle', 'iowait']

/** Of `/proc/stat`, whose first line is that of all processors; null where it is not there. */
export function readCpuTimes(stat: string): CpuTimes | null {
  const [name, ...words] = (stat.split('\n', 1)[0] ?? '').split(' ').filter(word => word !== '')
  const times = words.map(Number)
  if (name !== 'cpu' || !times.every(time => time >= 0)) return null
  let [busy, total] = [0, 0]
  for (const [at, field] of cpuFields.entries()) {
    const time = times[at] ?? 0
    total += time
    if (!idleFields.includes(field)) busy += time
  }
  return total > 0 ? { busy, total } : null
}

/** Of `/proc/meminfo`. What programs could have is free, caches included. */
export function readMemory(meminfo: string): Pick<HostReading, 'memory' | 'swap'> {
  const kibibytes = new Map<string, number>()
  for (const line of meminfo.slice(0, 16_384).split('\n')) {
    const [, name, value] = /^(\w{1,40}): {1,40}(\d{1,16}) kB$/.exec(line) ?? []
    if (name !== undefined) kibibytes.set(name, Number(value))
  }
  const space = (totalName: string, freeName: string): Space | null => {
    const [total, free] = [kibibytes.get(totalName), kibibytes.get(freeName)]
    return total === undefined || free === undefined
      ? null
      : { used: Math.max(0, total - free) * 1024, total: total * 1024 }
  }
  return {
    // Linux says what is available since 3.14.
    memory: space('MemTotal', 'MemAvailable') ?? space('MemTotal', 'MemFree'),
    swap: space('SwapTotal', 'SwapFree')
  }
}

/** Between two readings; null where one of them has none, or no time has passed. */
export function cpuPercent(before: CpuTimes | null, now: CpuTimes | null): number | null {
  if (before === null || now === null) return null
  const total = now.total - before.total
  // Machines that sleep, and some that are virtual, count backwards.
  if (total <= 0) return null
  return percentOf(Math.min(Math.max((now.busy - before.busy) / total, 0), 1))
}

/** With two digits behind the point. */
export const percentOf = (share: number): number => Math.round(share * 10_000) / 100

export const pointOf = (
  before: HostReading | undefined,
  { cpu, ...rest }: HostReading,
  recordedAt: Date
): HostPoint => ({ recordedAt, cpuPercent: cpuPercent(before?.cpu ?? null, cpu), ...rest })
