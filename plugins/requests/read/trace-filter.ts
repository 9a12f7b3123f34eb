import { instantIn, isUuid } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { FilterQuery } from '../schemas.js'

/** Which requests are wanted; what is undefined narrows nothing. */
export interface TraceFilter {
  readonly applicationId?: string | undefined
  readonly statusMin?: number | undefined
  readonly statusMax?: number | undefined
  /** Inclusive. */
  readonly from?: Date | undefined
  /** Exclusive. */
  readonly to?: Date | undefined
  readonly search?: string | undefined
}

/** An empty value is no filter. A malformed id or status is refused by name, a malformed time narrows nothing. */
export function readFilter(query: FilterQuery): TraceFilter {
  const applicationId = given(query.application_id)
  if (applicationId !== undefined && !isUuid(applicationId)) throw problems.badApplication()
  return {
    applicationId,
    statusMin: statusOf('status_min', query.status_min),
    statusMax: statusOf('status_max', query.status_max),
    from: timeOf(query.from),
    to: timeOf(query.to),
    search: given(query.search)?.replaceAll('\0', '')
  }
}

const given = (text: string | undefined): string | undefined => (text === '' ? undefined : text)

function statusOf(field: string, text: string | undefined): number | undefined {
  const status = given(text)
  if (status === undefined) return undefined
  if (!/^[1-5]\d\d$/.test(status)) throw problems.badStatus({ field })
  return Number(status)
}

const timeOf = (text: string | undefined): Date | undefined =>
  text === undefined ? undefined : instantIn(text)

interface Conditions {
  /** Empty, or with `where` in front. */
  readonly where: string
  readonly values: Readonly<Record<string, unknown>>
}

/** The rows behind one of a list, the newest first. */
export interface TracePlace {
  readonly recordedAt: Date
  readonly position: number
}

/** As SQL. Numbers of the filter stand in it, so that the planner sees which index serves them. */
export function conditionsOf(
  { applicationId, statusMin, statusMax, from, to, search }: TraceFilter,
  behind?: TracePlace
): Conditions {
  const all = [
    applicationId !== undefined && 'application_id = cast(:applicationId as uuid)',
    statusMin !== undefined && `status_code >= ${statusMin}`,
    statusMax !== undefined && `status_code <= ${statusMax}`,
    from !== undefined && 'recorded_at >= :from',
    to !== undefined && 'recorded_at < :to',
    behind !== undefined && '(recorded_at, position) < (:behindTime, :behindPosition)',
    search !== undefined && (isUuid(search.toLowerCase()) ? '(id = cast(:search as uuid) or ' : '(') + found
  ].filter(condition => condition !== false)
  return {
    where: all.length === 0 ? '' : `where ${all.join(' and ')}`,
    values: {
      ...(applicationId !== undefined && { applicationId }),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
      ...(behind !== undefined && { behindTime: behind.recordedAt, behindPosition: behind.position }),
      ...(search !== undefined && { search: search.toLowerCase() })
    }
  }
}

/** Nothing in the text that is looked for has a meaning, as it would have for `like`. */
const found =
  'strpos(lower(path), :search) > 0 or strpos(hostname, :search) > 0 or strpos(client_ip, :search) > 0)'
