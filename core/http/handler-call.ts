import type { Audit } from 'busbar/sdk'
import { isReply } from '../../sdk/reply.js'
import { faultOf } from '../frames/fault.js'
import { inFrame } from '../frames/frames.js'
import { discardResult } from './discard-result.js'
import type { RequestContext } from './request-context.js'

// A request passes here often: functions that have nothing to wait for hand on promises and make none.

/** Where what a route's declaration wants recorded goes, before the answer is sent. */
export interface AuditWriter {
  write(
    context: RequestContext,
    audit: Audit,
    outcome: { readonly result: unknown } | { readonly error: unknown }
  ): Promise<void>
}

interface CallOptions {
  readonly audit: AuditWriter
  /** The running plugin, as its handlers are given it. */
  readonly self: object
}

/** Calls the handler and writes the audit record; the answer itself is still to be sent. */
export function outcome(context: RequestContext, options: CallOptions): unknown {
  const { audit } = context.record
  return audit === undefined ? call(context, options) : audited(context, audit, options)
}

async function audited(context: RequestContext, rule: Audit, options: CallOptions): Promise<unknown> {
  let result: unknown
  try {
    result = await call(context, options)
  } catch (error) {
    await options.audit.write(context, rule, { error })
    throw error
  }
  try {
    await options.audit.write(context, rule, {
      result: isReply(result) && result.kind === 'value' ? result.value : result
    })
  } catch (error) {
    discardResult(result)
    throw error
  }
  return result
}

function call(context: RequestContext, options: CallOptions): unknown {
  const called = callHandler(context, options)
  return 'work' in called ? context.orExpired(called.work) : called.result
}

type Called = { readonly result: unknown } | { readonly work: PromiseLike<unknown> }

export function callHandler(context: RequestContext, { self }: CallOptions): Called {
  const { record } = context
  try {
    const result = inFrame(record.plugin, () => record.handler(context as never, self))
    return isThenable(result) ? { work: result } : { result }
  } catch (error) {
    throw faultOf(error)
  }
}

/** Not only promises: a query of knex is a thenable that runs when it is awaited. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
