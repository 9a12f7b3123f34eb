import {
  askOrLeaveOut,
  type Contributions,
  type ExpectedAnswer,
  isUuid,
  type Log,
  type Problem
} from 'busbar/sdk'
import { contributionLimitMs, type DeployHealth } from './api.js'

const statuses: ReadonlySet<unknown> = new Set<DeployHealth['status']>([
  'pending',
  'passing',
  'failing',
  'skipped'
])

const isTime = (value: unknown): boolean =>
  (typeof value === 'string' || value instanceof Date) && !Number.isNaN(new Date(value).getTime())

const isHealth = (health: Readonly<Record<keyof DeployHealth, unknown>>): health is DeployHealth =>
  typeof health.deployment_id === 'string' &&
  isUuid(health.deployment_id) &&
  typeof health.deploy_status === 'string' &&
  statuses.has(health.status) &&
  (health.message === null || typeof health.message === 'string') &&
  (health.checked_at === null || isTime(health.checked_at))

const expected: Omit<ExpectedAnswer<{ readonly health: DeployHealth | null }>, 'log'> = {
  what: 'the healths of deployments',
  takes: 'a DeployHealth, or null',
  take(answer) {
    if (answer === null || answer === undefined) return { health: null }
    if (typeof answer !== 'object') return undefined
    const {
      deployment_id,
      deploy_status,
      status,
      message = null,
      checked_at
    } = answer as Partial<Record<keyof DeployHealth, unknown>>
    const health = { deployment_id, deploy_status, status, message, checked_at }
    return isHealth(health) ? { health } : undefined
  }
}

/**
 * The health of the latest deployment by the first contribution that knows one; null before the first. One that fails is
 * left out where another one answers. Where none does it is not known, which is another thing than that there is none.
 */
export async function latestHealth(
  sources: Contributions<{ latest(applicationId: string): Promise<DeployHealth | null> }>,
  applicationId: string,
  log: Log
): Promise<DeployHealth | null> {
  const entries = sources.entries()
  let failed = 0
  let refusal: Problem | undefined
  for (const entry of entries) {
    const answer = await askOrLeaveOut(entry, value => value.latest(applicationId), {
      ...expected,
      log,
      ms: contributionLimitMs,
      onProblem: problem => {
        refusal ??= problem
      }
    })
    if (answer === undefined) failed++
    else if (answer.health !== null) return answer.health
  }
  if (failed > 0 && failed === entries.length)
    throw refusal ?? new Error('none of the plugins that know the health of deployments has told it')
  return null
}
