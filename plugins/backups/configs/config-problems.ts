import { problems } from '../problems.js'

/** What the platform says of an expression that it cannot read. */
const cron = { status: 400, code: 'E_SCHEDULE_CRON', message: 'what is wrong with the expression' }
const timeZone = { status: 400, code: 'E_SCHEDULE_TIME_ZONE', message: 'the time zone is not known' }

export const configProblems = [
  cron,
  timeZone,
  problems.resourceGone,
  problems.sourceOff,
  problems.destinationUnknown,
  problems.prefixInvalid,
  problems.scheduleFields,
  problems.scheduleNever,
  problems.tooManyConfigs
]

export const configRunProblems = [
  problems.configNotFound,
  problems.resourceGone,
  problems.sourceOff,
  problems.busy,
  problems.restoreBusy,
  problems.refused
]
