import { applicationStatuses } from 'busbar/api/applications'
import { described, maybe, named, nullable, object, oneOf, type Static, Type, timestamp } from 'busbar/sdk'
import { ranges } from './time-range.js'

const rangeNames = Object.keys(ranges).join(', ')
const timeLike = (example: string) => maybe(Type.String({ examples: [example] }))

export const rangeQuery = {
  range: described(
    maybe(Type.String({ examples: ['24h'] })),
    `How far back from now: ${rangeNames}; 1h unless given. It does not count where \`from\` is given.`
  ),
  from: described(timeLike('2026-01-31T12:00:00Z'), 'From this time on, RFC 3339.'),
  to: described(timeLike('2026-02-01T00:00:00Z'), 'Before this time, RFC 3339; now unless given.')
}

const hostFields = {
  cpu_percent: described(
    nullable(Type.Number()),
    'What all processors together were busy, 0 to 100; null where it was not measured.'
  ),
  memory_used: described(
    nullable(Type.Integer()),
    'Bytes of memory that programs have; caches that can be given back do not count.'
  ),
  memory_total: described(nullable(Type.Integer()), 'Bytes of memory that the machine has.'),
  disk_used: described(nullable(Type.Integer()), 'Bytes that are used of the file system that has `/`.'),
  disk_total: described(nullable(Type.Integer()), 'Bytes that this file system has.')
}

export const hostPoint = named(
  'HostMetricPoint',
  object({
    ...hostFields,
    recorded_at: described(
      timestamp(),
      'When it was measured; where the point is an average, when the first one was that is in it.'
    )
  }),
  { description: 'What the machine used at a time, or on average from then until the next point.' }
)

export const hostUsage = named(
  'HostMetrics',
  object({
    ...hostFields,
    swap_used: described(nullable(Type.Integer()), 'Bytes of swap that are used.'),
    swap_total: described(nullable(Type.Integer()), 'Bytes of swap that the machine has; 0 for none.'),
    recorded_at: described(timestamp(), 'When it was measured.')
  }),
  { description: 'What the machine uses. A field is null where it cannot be read.' }
)
export type HostUsage = Static<typeof hostUsage>

const percentOfCore = (what: string): string => `${what}; 100 is one core.`

export const applicationUsage = named(
  'ApplicationMetrics',
  object({
    cpu_percent: described(Type.Number(), percentOfCore('Time on processors since the sample before')),
    memory_usage: described(
      Type.Integer(),
      'Bytes of memory, without the part of the caches that can be given back at once.'
    ),
    memory_limit: described(
      Type.Integer(),
      'Bytes that it may have; the memory of the machine where it has no limit.'
    ),
    network_rx_bytes: described(Type.Integer(), 'Bytes received since the container was started.'),
    network_tx_bytes: described(Type.Integer(), 'Bytes sent since the container was started.'),
    recorded_at: described(timestamp(), 'When it was measured.')
  }),
  { description: 'What the container of an application uses.' }
)
export type ApplicationUsage = Static<typeof applicationUsage>

export const applicationPoint = named(
  'ApplicationMetricPoint',
  object({
    cpu_percent: described(Type.Number(), percentOfCore('Time on processors, on average')),
    memory_usage: described(Type.Integer(), 'Bytes of memory, as in `ApplicationMetrics`.'),
    memory_limit: described(Type.Integer(), 'Bytes that it may have, likewise.'),
    network_rx_bytes_per_second: described(Type.Integer(), 'Bytes received in a second, on average.'),
    network_tx_bytes_per_second: described(Type.Integer(), 'Bytes sent in a second, on average.'),
    recorded_at: described(timestamp(), 'When the first sample was taken that is in the point.')
  }),
  { description: 'What an application used from a time until the next point.' }
)

const serviceMetrics = named(
  'ServiceMetrics',
  object({
    cpu_percent: described(Type.Number(), percentOfCore('Time on processors; 0 while it does not run')),
    memory_used: described(Type.Integer(), 'Bytes of memory; 0 while it does not run.'),
    memory_limit: described(
      Type.Integer(),
      'Bytes that it may have; the memory of the machine where it has no limit, 0 while it does not run.'
    ),
    uptime_seconds: described(Type.Integer(), 'Since its container was started; 0 while it does not run.'),
    status: described(oneOf(applicationStatuses), 'What its container does.'),
    domain: described(Type.String(), 'The domain under which visitors reach it; empty where it has none.'),
    port: described(
      Type.Integer(),
      'The port that it listens on; 0 where nobody has set one and its image says it.'
    )
  }),
  { description: 'What an application uses now.' }
)
export type ServiceMetrics = Static<typeof serviceMetrics>

export const projectMetrics = described(
  Type.Record(Type.String(), serviceMetrics),
  'What each application of the project uses, by its `id`.'
)
