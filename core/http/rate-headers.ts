import type { ServerResponse } from 'node:http'
import type { Budget } from '../limits/rate-limiter.js'
import { setDefaultHeader } from './platform-response.js'

export function setRateHeaders(response: ServerResponse, { limit, remaining, resetAt }: Budget): void {
  setDefaultHeader(response, 'x-ratelimit-limit', String(limit))
  setDefaultHeader(response, 'x-ratelimit-remaining', String(remaining))
  setDefaultHeader(response, 'x-ratelimit-reset', String(Math.ceil(resetAt / 1000)))
}
