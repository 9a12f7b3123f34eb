import { instantIn, isUuid } from 'busbar/sdk'
import { problems } from './problems.js'
import type { FilterQuery } from './schemas.js'

/** Which records are wanted; what is undefined narrows nothing. */
export interface AuditFilter {
  readonly action?: string
  readonly resourceType?: string
  readonly resourceId?: string
  readonly userId?: string
  /** Inclusive. */
  readonly from?: Date
  /** Exclusive. */
  readonly to?: Date
}

/** An empty value is no filter; a malformed user or time is refused by name. */
export function readFilter(query: FilterQuery): AuditFilter {
  const userId = given(query.user_id)
  if (userId !== undefined && !isUuid(userId)) throw problems.badUser()
  return {
    action: given(query.action),
    resourceType: given(query.resource_type),
    resourceId: given(query.resource_id),
    userId,
    from: timeOf('from', query.from),
    to: timeOf('to', query.to)
  }
}

const given = (text: string | undefined): string | undefined => (text === '' ? undefined : text)

function timeOf(field: string, query: string | undefined): Date | undefined {
  const text = given(query)
  if (text === undefined) return undefined
  const time = instantIn(text)
  if (time === undefined) throw problems.badTime({ field })
  return time
}
