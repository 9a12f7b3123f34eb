import type { HealthCheck } from './api.js'
import { invalid } from './problems.js'
import type { ApplicationRow, HealthCheckBody } from './schemas.js'

export type HealthCheckColumns = Pick<
  ApplicationRow,
  | 'health_check_type'
  | 'health_check_path'
  | 'health_check_command'
  | 'health_check_expect_status'
  | 'health_check_interval_seconds'
  | 'health_check_retries'
  | 'health_check_start_period_seconds'
  | 'health_check_timeout_seconds'
>

const defaults = {
  windowSeconds: 120,
  intervalSeconds: 30,
  timeoutSeconds: 30,
  retries: 3,
  startPeriodSeconds: 0
} as const

const none: HealthCheckColumns = {
  health_check_type: 'none',
  health_check_path: null,
  health_check_command: null,
  health_check_expect_status: null,
  health_check_interval_seconds: null,
  health_check_retries: null,
  health_check_start_period_seconds: null,
  health_check_timeout_seconds: null
}

/** The whole check: what the body leaves out, or what belongs to another type, is cleared. */
export function decideHealthCheck(body: HealthCheckBody): HealthCheckColumns {
  switch (body.type) {
    case 'none':
      return none
    case 'http':
      return {
        ...none,
        health_check_type: 'http',
        health_check_path: parseHealthPath(body.path, 'path'),
        health_check_expect_status: parseExpectStatus(body.expect_status),
        health_check_timeout_seconds: positive(body.timeout_seconds)
      }
    case 'command':
      return {
        ...none,
        health_check_type: 'command',
        health_check_command: parseCommand(body.command),
        health_check_interval_seconds: positive(body.interval_seconds),
        health_check_retries: positive(body.retries),
        health_check_start_period_seconds: positive(body.start_period_seconds),
        health_check_timeout_seconds: positive(body.timeout_seconds)
      }
  }
}

/** The check of a new application: http by default, which is skipped until it has a path. */
export const initialHealthCheck = (path: string | undefined): HealthCheckColumns => ({
  ...none,
  health_check_type: 'http',
  health_check_path: parseHealthPath(path, 'health_check_path')
})

function parseHealthPath(text: string | null | undefined, field: string): string | null {
  if (text === undefined || text === null || text === '') return null
  if (!/^\/[^\s\u0000-\u001f\u007f]*$/.test(text))
    throw invalid(field, 'must start with / and hold no spaces')
  if (!/^[\u0021-\u007e]*$/.test(text))
    throw invalid(field, `holds characters that are encoded in an address: send ${encodeURI(text)}`)
  return text
}

function parseExpectStatus(status: number | null | undefined): number | null {
  if (status === undefined || status === null || status === 0) return null
  if (status < 100 || status > 599)
    throw invalid('expect_status', 'must be 0 (any 2xx) or a status from 100 to 599')
  return status
}

function parseCommand(text: string | null | undefined): string {
  const command = text?.trim() ?? ''
  if (command === '') throw invalid('command', 'is required for a command check')
  return command
}

const positive = (value: number | null | undefined): number | null =>
  value === undefined || value === null || value <= 0 ? null : value

/** The check as a deploy carries it out, defaults filled in. */
export function healthCheckOf(row: HealthCheckColumns): HealthCheck {
  if (row.health_check_type === 'http' && row.health_check_path !== null) {
    return {
      type: 'http',
      path: row.health_check_path,
      expectStatus: row.health_check_expect_status ?? 0,
      windowSeconds: row.health_check_timeout_seconds ?? defaults.windowSeconds
    }
  }
  if (row.health_check_type === 'command' && row.health_check_command !== null) {
    return {
      type: 'command',
      command: row.health_check_command,
      intervalSeconds: row.health_check_interval_seconds ?? defaults.intervalSeconds,
      retries: row.health_check_retries ?? defaults.retries,
      startPeriodSeconds: row.health_check_start_period_seconds ?? defaults.startPeriodSeconds,
      timeoutSeconds: row.health_check_timeout_seconds ?? defaults.timeoutSeconds
    }
  }
  return { type: 'none' }
}
