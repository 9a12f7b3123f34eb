import type { ContainerUsage } from './application/container-usage.js'
import type { HostPoint } from './host/host-reading.js'
import type { ApplicationUsage, HostUsage } from './schemas.js'

/** As clients get it. */
export const hostUsageOf = ({
  recordedAt,
  cpuPercent,
  memory,
  disk,
  swap
}: HostPoint): HostUsage & { readonly recorded_at: Date } => ({
  cpu_percent: cpuPercent,
  memory_used: memory?.used ?? null,
  memory_total: memory?.total ?? null,
  disk_used: disk?.used ?? null,
  disk_total: disk?.total ?? null,
  swap_used: swap?.used ?? null,
  swap_total: swap?.total ?? null,
  recorded_at: recordedAt
})

/** As clients get it. */
export const applicationUsageOf = (usage: ContainerUsage): ApplicationUsage => ({
  cpu_percent: usage.cpuPercent,
  memory_usage: usage.memoryBytes,
  memory_limit: usage.memoryLimitBytes,
  network_rx_bytes: usage.receivedBytes,
  network_tx_bytes: usage.sentBytes,
  recorded_at: usage.measuredAt
})
