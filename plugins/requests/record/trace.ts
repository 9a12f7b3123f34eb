import { randomUUID } from 'node:crypto'
import { isUuid } from 'busbar/sdk'
import type { ProxiedRequest } from '../api.js'
import type { RequestLog } from '../schemas.js'
import { maskPath } from './mask-path.js'

/** A request as it is kept. */
export type Trace = RequestLog & { readonly recorded_at: Date }

/** One whose application is still to be found by hostname and path. */
export interface TraceDraft {
  readonly trace: Trace
  readonly isUnresolved: boolean
  /** As it was asked for: what the application is found by. */
  readonly path: string
}

const longest = { hostname: 255, method: 32, path: 2048, client_ip: 64, user_agent: 512 } as const
/** Of a path so much is looked at for secrets; it is kept in part only. */
const lookedAt = 8192
const mostMs = 2_147_483_647
/** The end of the year 9999. */
const lastTime = 253_402_300_799_999

/**
 * What a proxy says of a request, as it can be stored: texts of a bounded length that PostgreSQL takes, numbers in their ranges, secrets
 * masked. `clean` takes out what is known to be one.
 */
export function draftOf(request: ProxiedRequest, clean: (text: string) => string): TraceDraft {
  const { id, applicationId, at } = request
  const path = request.path.slice(0, lookedAt)
  return {
    isUnresolved: applicationId === undefined,
    path,
    trace: {
      id: id !== null && isUuid(id) ? id : randomUUID(),
      application_id: applicationId != null && isUuid(applicationId) ? applicationId : null,
      hostname: storable(request.hostname, longest.hostname),
      method: storable(request.method, longest.method),
      path: storable(clean(maskPath(path)), longest.path),
      status_code: whole(request.statusCode, 999),
      latency_ms: whole(request.latencyMs, mostMs),
      request_size: sizeOf(request.requestSize),
      response_size: sizeOf(request.responseSize),
      client_ip: request.clientIp === null ? null : storable(request.clientIp, longest.client_ip),
      user_agent: request.userAgent === null ? null : storable(clean(request.userAgent), longest.user_agent),
      recorded_at: new Date(at >= 0 && at <= lastTime ? at : Date.now())
    }
  }
}

/** Neither NUL nor half a pair of surrogates, which neither PostgreSQL nor UTF-8 has. */
const storable = (text: string, max: number): string =>
  text.slice(0, max).replace(/[\0\ud800-\udfff]/gu, '\ufffd')

const whole = (value: number, most: number): number =>
  Number.isFinite(value) ? Math.min(Math.max(Math.round(value), 0), most) : 0

const sizeOf = (value: number | null): number | null =>
  value === null ? null : whole(value, Number.MAX_SAFE_INTEGER)
