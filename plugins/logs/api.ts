import type { Owner } from 'busbar/api/containers'
import {
  type CursorRows,
  described,
  extensionPoint,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  type Page,
  type SseFrame,
  type Static,
  service,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

/** The mildest first. */
export const logLevels = ['debug', 'info', 'warning', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export const logStreams = ['stdout', 'stderr'] as const
export type LogStream = (typeof logStreams)[number]

const lineFields = {
  level: described(
    oneOf(logLevels),
    'How serious the line is, by what it says itself: a tag at its beginning, a field of JSON, or its words. `info` where it says nothing.'
  ),
  stream: described(oneOf(logStreams), 'What it was written to.'),
  message: described(
    Type.String(),
    'The line, without its end and without what no terminal would show; colours stay. One of more than 16 KiB is several of the same time.'
  )
}
const recordedAt = 'When the engine took it in, with nanoseconds.'

/** A line as it is kept: of the answers of `GET …/logs/history`, for each kind of source. */
export const containerLog = named(
  'ContainerLog',
  object({
    id: described(
      uuid(),
      'What the line is called: as `cursor` of the history and as `Last-Event-ID` of the stream it stands for its place.'
    ),
    source_type: described(Type.String(), 'The kind of what has written it: `application`, `database`.'),
    source_id: described(uuid(), 'What has written it.'),
    ...lineFields,
    recorded_at: described(timestamp(), recordedAt),
    container_id: described(nullable(Type.String()), 'The container that has written it.'),
    deployment_id: described(
      nullable(uuid()),
      'The deployment that the container is of; null where it is of none.'
    )
  }),
  { description: 'A line that a container has written.' }
)
export type ContainerLog = Static<typeof containerLog>

/** A line as it is told on `container-logs:{sourceId}`. */
export const containerLogEvent = named(
  'ContainerLogEvent',
  object({
    id: described(uuid(), 'What the line is called in the history.'),
    ...lineFields,
    recorded_at: described(timestamp(), recordedAt),
    container_id: described(Type.String(), 'The container that has written it.'),
    deployment_id: described(
      Type.String(),
      'The deployment that the container is of; empty where it is of none.'
    )
  }),
  { description: 'A line that a container has written just now.' }
)
export type ContainerLogEvent = Static<typeof containerLogEvent>

/** What one container has written: of the answers of `GET …/logs/sessions`. */
export const logSession = named(
  'LogSession',
  object({
    container_id: described(
      nullable(Type.String()),
      'The container, as the filter `session` of the history takes it.'
    ),
    deployment_id: described(nullable(uuid()), 'The deployment that it is of; null where it is of none.'),
    commit_sha: described(
      nullable(Type.String()),
      'The commit that was deployed; null where it is not known.'
    ),
    triggered_by: described(
      nullable(Type.String()),
      'What has begun the deployment; null where that is not known any more.'
    ),
    status: described(
      nullable(Type.String()),
      'What has become of the deployment; null where that is not known any more.'
    ),
    started_at: described(
      nullable(timestamp()),
      'When the deployment began; null where that is not known any more.'
    ),
    first_at: described(nullable(timestamp()), 'The time of the first line that is kept.'),
    last_at: described(nullable(timestamp()), 'The time of the last line that is kept.'),
    line_count: described(Type.Integer(), 'How many lines are kept.')
  }),
  { description: 'The lines of one container.' }
)
export type LogSession = Static<typeof logSession>

/** The filters of a history, as `route.list` takes them. What is malformed narrows nothing. */
export const logHistoryQuery = {
  q: described(
    maybe(Type.String({ maxLength: 500, examples: ['timeout'] })),
    'Only lines with this text, wherever it stands; upper and lower case are the same.'
  ),
  level: described(maybe(Type.String({ examples: ['error'] })), 'Only lines of this level.'),
  stream: described(maybe(Type.String({ examples: ['stderr'] })), 'Only lines of this stream.'),
  since: described(
    maybe(Type.String({ examples: ['2026-01-31T12:00:00Z'] })),
    'Only lines from then on, RFC 3339.'
  ),
  until: described(
    maybe(Type.String({ examples: ['2026-01-31T13:00:00Z'] })),
    'Only lines from before then, RFC 3339.'
  ),
  session: described(
    maybe(Type.String({ maxLength: 100, examples: ['0123456789ab'] })),
    'Only lines of this container, by its id or the first twelve characters of it; `none`: of no container.'
  )
}
/** What a client has asked for by it. */
export interface LogHistoryQuery {
  readonly q?: string | undefined
  readonly level?: string | undefined
  readonly stream?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
  readonly session?: string | undefined
}

/** The size of its pages. */
export const logHistoryPage = Object.freeze({ fallback: 500, max: 1000 })

/** What has sessions and a history, for plugins with routes of their own for it. */
export interface LogArchive {
  /**
   * The latest first, by time; lines of one time as they came, the last first. What has no lines has an empty one. `asker`: who asks, by
   * the id of a user; askers take turns, and 503 is the answer where the turn did not come in time.
   */
  history(
    sourceId: string,
    query: LogHistoryQuery,
    page: Page & { readonly cursor?: string | undefined },
    options: { readonly asker: string; readonly signal: AbortSignal }
  ): Promise<CursorRows<ContainerLog>>
  /** At most 50, those first that have written last. */
  sessions(sourceId: string): Promise<readonly LogSession[]>
  /**
   * What one of its containers has written, and with `follow` what any of them writes from then on, as server-sent events: `data` is
   * the time and the line. It ends when the source is removed. `after`: the id of a line, as a reader shows it in `Last-Event-ID`; what
   * is none counts as absent.
   */
  stream(
    sourceId: string,
    options: {
      readonly containerId?: string | undefined
      readonly deploymentId?: string | undefined
      readonly after?: string | undefined
      readonly follow: boolean
      readonly signal: AbortSignal
    }
  ): AsyncIterable<SseFrame | readonly SseFrame[] | Uint8Array>
  /**
   * Removes everything that is kept of a source that is being removed: for its teardown, when its containers have gone. It is
   * idempotent; what containers of it still write is kept again.
   */
  forget(sourceId: string): Promise<void>
}
export const logArchive = service<LogArchive>('logs.archive')

/**
 * A kind of things whose containers' output is kept, under the `source_type` of their lines: `application`, `database`. Lines are told on
 * `container-logs:{sourceId}` to who may see the resource of that id, of kind `application` or `database`.
 */
export interface LogSourceKind {
  /** The id of what a container writes for; undefined for one of another kind. Asked once for each container, it answers at once. */
  sourceOf(owner: Owner): string | undefined
}
export const logSources = extensionPoint<LogSourceKind>('logs.sources')
