import { problemTable, type Recurrence } from 'busbar/sdk'
import { Cron } from 'croner'

const problems = problemTable({
  cron: [
    400,
    'E_SCHEDULE_CRON',
    'the cron expression "{cron}" is not valid: {reason}; five fields are minute, hour, day of month, month and day of week, as in "30 3 * * 1-5"'
  ],
  timeZone: [
    400,
    'E_SCHEDULE_TIME_ZONE',
    'the time zone "{timeZone}" is unknown; give an IANA name such as "Europe/Berlin" or "UTC"'
  ]
})

/** Longer ones are refused unread: what a user typed is parsed here. */
const longestExpression = 200

export const defaultTimeZone = 'UTC'

/** Reads a recurrence; throws a `Problem` that says what is wrong with it. */
function parse({ cron, timeZone = defaultTimeZone }: Recurrence): Cron {
  const shown = cron.slice(0, longestExpression)
  if (cron.length > longestExpression)
    throw problems.cron({ cron: shown, reason: `it is longer than ${longestExpression} characters` })
  try {
    new Intl.DateTimeFormat('en', { timeZone })
  } catch {
    throw problems.timeZone({ timeZone: timeZone.slice(0, longestExpression) })
  }
  try {
    return new Cron(cron, { timezone: timeZone, mode: '5-or-6-parts', paused: true })
  } catch (error) {
    throw problems.cron({ cron: shown, reason: (error as Error).message.replace(/^Cron\w+: /, '') })
  }
}

/** The first time after `after`; null when no further time matches. */
export const nextTime = (recurrence: Recurrence, after: Date): Date | null => parse(recurrence).nextRun(after)

/** The first `count` times after `after`. */
export const nextTimes = (recurrence: Recurrence, after: Date, count: number): readonly Date[] =>
  parse(recurrence).nextRuns(count, after)

/** What is wrong with a recurrence, in words for its author; null when nothing is. */
export function recurrenceFault(recurrence: Recurrence): string | null {
  try {
    parse(recurrence)
    return null
  } catch (error) {
    return (error as Error).message
  }
}
