import type { Figure } from 'busbar/api/metrics'

interface Counts {
  readonly stored: number
  readonly dropped: number
  readonly skipped: number
  readonly unread: number
}

/** What this process has made of requests, since the plugin was started. */
export const figuresOf = ({ stored, dropped, skipped, unread }: Counts): readonly Figure[] => [
  counter('requests_recorded_total', 'Requests that proxies have answered and that were stored.', stored),
  counter(
    'requests_dropped_total',
    'Requests that were not recorded, as they came faster than they could be stored.',
    dropped
  ),
  counter('access_log_lines_skipped_total', 'Lines of access logs that were too long to be read.', skipped),
  counter('access_log_lines_unread_total', 'Lines of access logs that were no request.', unread)
]

const counter = (name: string, help: string, value: number): Figure => ({
  name,
  help,
  type: 'counter',
  values: [{ value }]
})
