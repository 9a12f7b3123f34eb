import { instantIn, isUuid } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { GlobalQuery } from '../schemas.js'

/** What of all deployments is wanted. */
export interface GlobalFilter {
  readonly projectId?: string
  readonly applicationId?: string
  readonly status?: string
  /** For ILIKE. */
  readonly pattern?: string
  readonly from?: Date
  readonly to?: Date
}

/** An empty value is no filter; a malformed id or time is refused by name. */
export function readFilter(query: GlobalQuery): GlobalFilter {
  return {
    projectId: idOf('project_id', query.project_id),
    applicationId: idOf('application_id', query.application_id),
    status: query.status === '' ? undefined : query.status,
    pattern: patternOf(query.search),
    from: timeOf('from', query.from),
    to: timeOf('to', query.to)
  }
}

function idOf(field: string, text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  if (!isUuid(text)) throw problems.badId({ field })
  return text
}

function timeOf(field: string, text: string | undefined): Date | undefined {
  if (text === undefined || text === '') return undefined
  const time = instantIn(text)
  if (time === undefined) throw problems.badFilter({ field })
  return time
}

/** The text itself anywhere, its wildcards taken literally; PostgreSQL cannot hold NUL, so that matches nothing. */
function patternOf(search: string | undefined): string | undefined {
  if (search === undefined || search === '') return undefined
  return `%${search.replaceAll('\0', '\u{fffd}').replace(/[\\%_]/g, character => `\\${character}`)}%`
}
