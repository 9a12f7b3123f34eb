import {
  described,
  list,
  maybe,
  named,
  nullable,
  object,
  type Static,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

export const requestLog = named(
  'RequestLog',
  object({
    id: described(
      uuid(),
      'What the request is called; its application was given the same as `X-Request-Id` where the proxy gives one.'
    ),
    application_id: described(
      nullable(uuid()),
      'The application that it was for, by hostname and path; null where it was for none.'
    ),
    hostname: described(Type.String(), 'The name that was asked for, in lower case and without a port.'),
    method: described(Type.String(), 'As the client sent it.'),
    path: described(
      Type.String(),
      'The path with its query. Values of parameters that are called like secrets are `[REDACTED]`; what is longer than 2 048 characters is cut.'
    ),
    status_code: described(
      Type.Integer(),
      'The status of the answer; 101 where it became another protocol, 499 where the client went away before there was one.'
    ),
    latency_ms: described(
      Type.Integer(),
      'From the head of the request to the end of the answer; of another protocol, to its beginning.'
    ),
    request_size: described(
      nullable(Type.Integer()),
      'Bytes of the body of the request; null where the proxy does not tell.'
    ),
    response_size: described(
      nullable(Type.Integer()),
      'Bytes of the body of the answer; null where the proxy does not tell.'
    ),
    client_ip: described(nullable(Type.String()), 'Where it came from; null where that is not known.'),
    user_agent: described(
      nullable(Type.String()),
      'What the client calls itself, of which 512 characters are kept; null where it does not.'
    ),
    recorded_at: described(timestamp(), 'When the request came.')
  }),
  { description: 'A request that a proxy has answered.' }
)
export type RequestLog = Static<typeof requestLog>

const textLike = (example: string) => maybe(Type.String({ examples: [example] }))
const filterFields = {
  application_id: described(
    textLike('9b2d4c1e-5a6f-4e07-b3d8-2c7e9f10a4b5'),
    'Only requests for this application, by `id`.'
  ),
  status_min: described(textLike('500'), 'Only answers with this status or a higher one.'),
  status_max: described(textLike('599'), 'Only answers with this status or a lower one.'),
  from: described(
    textLike('2026-01-31T12:00:00Z'),
    'Only requests from this time on, RFC 3339; what is none narrows nothing.'
  ),
  to: described(
    textLike('2026-02-01T00:00:00Z'),
    'Only requests from before this time, RFC 3339; what is none narrows nothing.'
  ),
  search: described(
    maybe(Type.String({ maxLength: 500, examples: ['/checkout'] })),
    'Only requests with this text in path, hostname or client address, upper and lower case being the same, or with this `id`. No character has a meaning of its own.'
  )
}
export const filterQuery = filterFields
export const summaryQuery = object(filterFields)
export type FilterQuery = Static<typeof summaryQuery>

const classCounts = named(
  'RequestClassCounts',
  object({
    c2xx: described(Type.Integer(), 'Answers of 200 to 299.'),
    c3xx: described(Type.Integer(), 'Answers of 300 to 399.'),
    c4xx: described(Type.Integer(), 'Answers of 400 to 499.'),
    c5xx: described(Type.Integer(), 'Answers of 500 to 599.')
  }),
  { description: 'Answers by the first digit of their status.' }
)
const perMinutePoint = named(
  'RequestPerMinutePoint',
  object({
    ts: described(timestamp(), 'The beginning of the minute.'),
    count: described(Type.Integer(), 'How many requests came in it.')
  }),
  { description: 'The requests of one minute.' }
)
export const requestSummary = named(
  'RequestSummary',
  object({
    total: described(Type.Integer(), 'How many requests match, those of no class included.'),
    class_counts: described(classCounts, 'How many answers there were of each class.'),
    p50_ms: described(Type.Number(), 'Half of them took so long or less; 0 where there are none.'),
    p95_ms: described(Type.Number(), '95 of 100 took so long or less; 0 where there are none.'),
    error_rate: described(Type.Number(), 'Answers of 500 to 599, in percent of the total.'),
    per_minute: described(
      list(perMinutePoint),
      'How many came in each minute, the oldest first, those without any included: from `from`, or the first request, to `to`, or the last one. Of more than 1 440 minutes the last 1 440.'
    )
  }),
  { description: 'What requests have come to.' }
)
export type RequestSummary = Static<typeof requestSummary>
