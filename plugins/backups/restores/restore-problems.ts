import { problems } from '../problems.js'

/** What a restore is refused for before it begins. */
export const restoreProblems = [
  problems.resourceGone,
  problems.sourceOff,
  problems.notFound,
  problems.otherEngine,
  problems.notSucceeded,
  problems.restoreBusy,
  problems.busy,
  problems.refused
]
