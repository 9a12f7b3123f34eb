import type { ContainerStats } from 'busbar/api/containers'
import { percentOf } from '../host/host-reading.js'

/** What a container uses. */
export interface ContainerUsage {
  readonly measuredAt: Date
  /** 100 is one core. */
  readonly cpuPercent: number
  readonly memoryBytes: number
  readonly memoryLimitBytes: number
  /** Since it was started. */
  readonly receivedBytes: number
  readonly sentBytes: number
}

/** How fast something has grown between two samples, by the second. */
interface UsageRates {
  /** 1 is one core. */
  readonly cores: number
  readonly receivedBytes: number
  readonly sentBytes: number
}

/** What is shorter tells of the moments of measuring rather than of the container. */
const shortestMs = 500

/** Undefined where the two tell of no time: too close together, or the container was started anew between them. */
export function ratesBetween(before: ContainerStats, now: ContainerStats): UsageRates | undefined {
  const ms = now.at.getTime() - before.at.getTime()
  const cpuSeconds = now.cpuSeconds - before.cpuSeconds
  const [received, sent] = [now.receivedBytes - before.receivedBytes, now.sentBytes - before.sentBytes]
  if (ms < shortestMs || cpuSeconds < 0) return undefined
  const perSecond = (amount: number): number => (Math.max(0, amount) * 1000) / ms
  return {
    cores: perSecond(cpuSeconds),
    // A container that leaves a network counts less than before.
    receivedBytes: perSecond(received),
    sentBytes: perSecond(sent)
  }
}

export const usageOf = (now: ContainerStats, { cores }: UsageRates, measuredAt: Date): ContainerUsage => ({
  measuredAt,
  cpuPercent: percentOf(cores),
  memoryBytes: now.memoryBytes,
  memoryLimitBytes: now.memoryLimitBytes,
  receivedBytes: now.receivedBytes,
  sentBytes: now.sentBytes
})
