const defaultMinutes = 45
const defaultCheckSeconds = 30

/** How long one deployment may take: TASK_TIMEOUT_MINUTES. Throws with the remedy. */
export function readTimeoutMs(environment: (name: string) => string | undefined): number {
  const text = environment('TASK_TIMEOUT_MINUTES')
  if (text === undefined) return defaultMinutes * 60_000
  const minutes = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (minutes < 1)
    throw new Error(
      `TASK_TIMEOUT_MINUTES is "${text}": give whole minutes from 1 to 9999, like ${defaultMinutes}`
    )
  return minutes * 60_000
}

/** How long a running application is left alone between two `http` checks: HEALTH_CHECK_INTERVAL_SECONDS. Throws with the remedy. */
export function readCheckIntervalMs(environment: (name: string) => string | undefined): number {
  const text = environment('HEALTH_CHECK_INTERVAL_SECONDS')
  if (text === undefined) return defaultCheckSeconds * 1000
  const seconds = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (seconds < 1)
    throw new Error(
      `HEALTH_CHECK_INTERVAL_SECONDS is "${text}": give whole seconds from 1 to 9999, like ${defaultCheckSeconds}`
    )
  return seconds * 1000
}
