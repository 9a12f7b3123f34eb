import type { ContainerStats } from 'busbar/api/containers'
import type Docker from 'dockerode'
import { short } from './container-access.js'
import type { EngineClient } from './engine-client.js'
import { problems } from './problems.js'

/** See `ContainerRuntime.stats`. */
export async function containerStats(engine: EngineClient, containerId: string): Promise<ContainerStats> {
  const sample = await engine.call(
    'measure a container',
    async docker => await docker.getContainer(containerId).stats({ stream: false, 'one-shot': true }),
    {
      explain: ({ statusCode }) =>
        statusCode === 404 ? problems.containerMissing({ container: short(containerId) }) : undefined
    }
  )
  // Without a time nothing was measured.
  if (Number.isNaN(Date.parse(sample.read)) || sample.read.startsWith('0001-'))
    throw problems.containerNotRunning({ container: short(containerId), status: 'not running' })
  return readStats(sample)
}

/** Pure. What an engine leaves out, as those of other kernels do, is 0. */
export function readStats({
  read,
  cpu_stats: cpu,
  memory_stats: memory,
  pids_stats: processes,
  networks = {},
  blkio_stats: disks
}: Docker.ContainerStats): ContainerStats {
  const ofNetworks = Object.values(networks as Partial<Record<string, Docker.NetworkStats[string]>>)
  const received = ofNetworks.map(network => network?.rx_bytes ?? 0)
  const sent = ofNetworks.map(network => network?.tx_bytes ?? 0)
  const transfers = disks?.io_service_bytes_recursive ?? []
  const ofDisks = (wanted: string): number[] =>
    transfers.filter(({ op }) => op.toLowerCase() === wanted).map(({ value }) => value)
  // What is used has the groups within it. Of v1 `inactive_file` has not, and the total is there too; v2 has the one alone.
  const { inactive_file: v2, total_inactive_file: v1 } = (memory.stats ?? {}) as Partial<
    Record<string, number>
  >
  const used = memory.usage ?? 0
  return {
    at: new Date(read),
    cpuSeconds: (cpu.cpu_usage?.total_usage ?? 0) / 1e9,
    memoryBytes: Math.max(0, used - (v1 ?? v2 ?? 0)),
    memoryLimitBytes: memory.limit ?? 0,
    processes: processes?.current ?? 0,
    receivedBytes: sum(received),
    sentBytes: sum(sent),
    readBytes: sum(ofDisks('read')),
    writtenBytes: sum(ofDisks('write'))
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)
