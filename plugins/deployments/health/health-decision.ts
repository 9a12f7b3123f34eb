import type { ApplicationStatus } from 'busbar/api/applications'

/** So many failures in a row make an application unhealthy, as with the engine's own checks; one success ends it. */
export const failuresInARow = 3

/** What is known of a running version before it is asked again. */
interface KnownHealth {
  readonly applicationStatus: ApplicationStatus
  readonly healthStatus: string | null
  /** How often in a row it has failed. */
  readonly failures: number
}

interface HealthDecision {
  readonly failures: number
  /** What its record must say from now on; undefined: what it says. */
  readonly healthStatus?: 'passing' | 'failing'
  /** The application's new status; undefined: unchanged. */
  readonly tell?: 'healthy' | 'unhealthy'
}

export function decideHealth(
  { applicationStatus, healthStatus, failures }: KnownHealth,
  isHealthy: boolean
): HealthDecision {
  if (isHealthy) {
    return {
      failures: 0,
      ...(healthStatus !== 'passing' && { healthStatus: 'passing' as const }),
      ...(applicationStatus === 'unhealthy' && { tell: 'healthy' as const })
    }
  }
  const now = failures + 1
  if (now < failuresInARow) return { failures: now }
  return {
    failures: now,
    ...(healthStatus !== 'failing' && { healthStatus: 'failing' as const }),
    ...(applicationStatus === 'running' && { tell: 'unhealthy' as const })
  }
}
