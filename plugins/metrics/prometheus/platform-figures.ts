import { type PlatformStatistics, requestDurationBounds } from 'busbar/sdk'
import { counter, gauge, histogram, type PrometheusFigure, type Sample } from './figure.js'

/** What the kernel counts. Pure. */
export const platformFigures = ({
  http,
  bus,
  database,
  jobs,
  stalls,
  plugins
}: PlatformStatistics): PrometheusFigure[] => [
  ...httpFigures(http),
  ...busFigures(bus),
  ...databaseFigures(database),
  ...(jobs === undefined
    ? []
    : [
        gauge(
          'busbar_jobs',
          'Jobs of all processes, by lane and state; failed ones are out of attempts',
          jobs.flatMap(({ lane, ...counts }) =>
            Object.entries(counts).map(([state, value]) => ({ labels: { lane, state }, value }))
          )
        )
      ]),
  counter(
    'busbar_event_loop_stalls_total',
    'Times the event loop stood still for longer than 200 ms',
    stalls.count
  ),
  counter('busbar_event_loop_stalled_seconds_total', 'How long it stood still in these', stalls.seconds),
  gauge(
    'busbar_plugin_state',
    'One for each installed plugin, with its state',
    plugins.map(({ id, state }) => ({ labels: { plugin: id, state }, value: 1 }))
  )
]

const byStatus = (
  answers: ReadonlyMap<number, number>,
  labels: Readonly<Record<string, string>>
): readonly Sample[] =>
  [...answers].map(([status, value]) => ({ labels: { ...labels, status: String(status) }, value }))

const httpFigures = ({
  routes,
  unrouted,
  underWay,
  eventStreams,
  connections
}: PlatformStatistics['http']): PrometheusFigure[] => [
  counter(
    'busbar_http_requests_total',
    'Requests by the route that was declared, and by status; 499: the client went away before the answer',
    routes.flatMap(({ plugin, method, route, answers }) => byStatus(answers, { plugin, method, route }))
  ),
  histogram(
    'busbar_http_request_duration_seconds',
    'How long answers took to the last byte, event streams left out',
    requestDurationBounds,
    routes
      .filter(({ durations }) => durations.some(count => count > 0))
      .map(({ method, route, durations, seconds }) => ({
        labels: { method, route },
        counts: durations,
        sum: seconds
      }))
  ),
  counter(
    'busbar_http_unrouted_requests_total',
    'Requests that were answered before a route was found, by status',
    byStatus(unrouted, {})
  ),
  gauge('busbar_http_requests_under_way', 'Requests under way, event streams among them', underWay),
  gauge('busbar_http_event_streams', 'Event streams of signed-in users that are open', eventStreams),
  gauge('busbar_http_connections', 'Connections that are open, WebSockets among them', connections)
]

const busFigures = ({
  sockets,
  published,
  dropped,
  missed,
  disconnected
}: PlatformStatistics['bus']): PrometheusFigure[] => [
  gauge('busbar_websockets', 'Open WebSockets for live messages', sockets),
  counter('busbar_bus_messages_total', 'Live messages that had a subscriber here, each once', published),
  counter(
    'busbar_bus_messages_dropped_total',
    'Live messages that nobody here, or nobody in other processes, got: too many at once, or the database was away',
    dropped
  ),
  counter(
    'busbar_bus_client_messages_dropped_total',
    'Copies of live messages that one client did not get, as it did not read',
    missed
  ),
  counter(
    'busbar_bus_clients_dropped_total',
    'Clients that were disconnected as they did not read',
    disconnected
  )
]

const databaseFigures = ({ pool, plugins }: PlatformStatistics['database']): PrometheusFigure[] => [
  gauge('busbar_database_pool_connections', 'Connections of the pool, by what they do', [
    { labels: { state: 'busy' }, value: pool.open - pool.idle },
    { labels: { state: 'idle' }, value: pool.idle }
  ]),
  gauge('busbar_database_pool_connections_max', 'The most that the pool opens', pool.limit),
  gauge('busbar_database_pool_waiting', 'Statements that wait for a connection of the pool', pool.waiting),
  gauge(
    'busbar_database_plugin_connections',
    'Connections that a plugin has in use',
    plugins.map(({ plugin, held }) => ({ labels: { plugin }, value: held }))
  ),
  gauge(
    'busbar_database_plugin_waiting',
    'Statements of a plugin that wait for one of its connections',
    plugins.map(({ plugin, waiting }) => ({ labels: { plugin }, value: waiting }))
  )
]
