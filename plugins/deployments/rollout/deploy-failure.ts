import { isProblem, withRemedy } from 'busbar/sdk'

/** Why a deployment cannot succeed: what happened, what helps, and what was seen. */
export class DeployFailure extends Error {
  constructor(
    /** A sentence without a full stop that names the thing at fault. */
    readonly reason: string,
    /** What the reader can do about it; null where the reason says it. */
    readonly remedy: string | null = null,
    /** Output, a response, a state: what proves the reason. */
    readonly evidence: string | null = null
  ) {
    super(remedy === null ? reason : withRemedy(reason, remedy))
    this.name = 'DeployFailure'
  }
}

/** Why a deployment ended that somebody has asked to end. */
export const cancelledReason = 'cancelled'

/** The reason of a signal that was aborted because the deployment was cancelled. */
export class Cancelled extends DeployFailure {
  constructor() {
    super(cancelledReason)
  }
}

/** True for failures with a message for the user; anything else is a fault of the platform. */
export const isExpected = (error: unknown): boolean => error instanceof DeployFailure || isProblem(error)

/** The failure behind whatever was thrown. */
export function failureOf(error: unknown): DeployFailure {
  if (error instanceof DeployFailure) return error
  if (isProblem(error)) {
    const { message } = error
    const { remedy } = error.details
    return typeof remedy === 'string' && message.endsWith(` ${remedy}`)
      ? new DeployFailure(message.slice(0, -remedy.length - 2), remedy)
      : new DeployFailure(message)
  }
  return new DeployFailure(
    `an internal error: ${error instanceof Error ? error.message : String(error)}`,
    'the log of the platform has the details'
  )
}
