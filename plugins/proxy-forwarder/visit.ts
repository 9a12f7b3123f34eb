import type { IncomingMessage } from 'node:http'
import type { OwnAnswer } from 'busbar/sdk/http1'

/** A request as the features of a route see it. */
export interface Visit {
  /** Without its query. */
  readonly path: string
  /** Of the client: behind a proxy that is believed, what that says. */
  readonly address: string
  readonly request: IncomingMessage
}

/** What a request is answered instead of being handed on; undefined where it may pass. Does not reject. */
export type Check = (visit: Visit) => OwnAnswer | undefined | Promise<OwnAnswer | undefined>

/** The first answer that a check has, one after another; a promise only from the first that takes its time. */
export function firstAnswer(checks: readonly Check[], visit: Visit): ReturnType<Check> {
  for (const [index, check] of checks.entries()) {
    const answer = check(visit)
    if (answer instanceof Promise)
      return answer.then(own => own ?? firstAnswer(checks.slice(index + 1), visit))
    if (answer !== undefined) return answer
  }
  return undefined
}
