import type { EndedDeployments, StatusCounts } from './api.js'
import type { AppHealth, ContainerStats, DeployStats } from './schemas.js'

export const nothing: StatusCounts = Object.freeze({
  running: 0,
  unhealthy: 0,
  errored: 0,
  stopped: 0,
  inactive: 0
})

type UnderWay = Pick<StatusCounts, 'errored' | 'stopped' | 'inactive'>

/**
 * Each application once. One that is being deployed and of which no version runs is busy, whatever it was before; the two were
 * counted one after the other, so there may be more of these than of the others.
 */
export function appHealth(counts: StatusCounts, underWay: UnderWay): AppHealth {
  const [errored, stopped, inactive] = (['errored', 'stopped', 'inactive'] as const).map(status => {
    const busy = Math.min(counts[status], underWay[status])
    return { rest: counts[status] - busy, busy }
  })
  const busy = [errored, stopped, inactive].reduce((sum, one) => sum + (one?.busy ?? 0), 0)
  return {
    running: counts.running,
    unhealthy: counts.unhealthy,
    errored: errored?.rest ?? 0,
    stopped: stopped?.rest ?? 0,
    inactive: inactive?.rest ?? 0,
    busy,
    total: totalOf(counts)
  }
}

export const totalOf = ({ running, unhealthy, errored, stopped, inactive }: StatusCounts): number =>
  running + unhealthy + errored + stopped + inactive

export const deployStats = ({ succeeded, failed, medianBuildMs }: EndedDeployments): DeployStats => ({
  succeeded,
  failed,
  total: succeeded + failed,
  median_build_ms: medianBuildMs
})

/** The containers of what users run, by kind. What was never deployed has none. */
export function containerStats(counts: ReadonlyArray<readonly [kind: string, StatusCounts]>): ContainerStats {
  const kinds = counts.map(([kind, { running, unhealthy, errored, stopped }]) => ({
    kind,
    running: running + unhealthy,
    stopped,
    error: errored,
    total: running + unhealthy + stopped + errored
  }))
  const sum = (of: 'running' | 'stopped' | 'error' | 'total'): number =>
    kinds.reduce((all, kind) => all + kind[of], 0)
  return {
    running: sum('running'),
    stopped: sum('stopped'),
    error: sum('error'),
    total: sum('total'),
    by_type: Object.fromEntries(kinds.map(({ kind, running, total }) => [kind, { running, total }]))
  }
}
