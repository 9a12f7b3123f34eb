/**
 * Libraries of which more is used than they publish, and where. A later version may do without it and say nothing, so
 * each is pinned exactly, and a test in this folder fails with the name of what has gone.
 */
export const pinned: Readonly<Record<string, string>> = {
  dockerode: 'plugins/runtime-docker/load-dockerode.ts: the modules by which it loads gRPC and ssh2',
  'graphile-worker':
    'core/jobs/worker-connections.ts, lane.ts: the names of its statements, and when it reads its tasks',
  knex: 'core/database/statements.ts: how its client runs what it has compiled',
  pg: 'core/database/statement.ts, session-state.ts: fields of a query and of a connection; sendable.ts: how values are sent',
  pino: 'core/log/plain-line.ts: what a logger keeps for its lines',
  'prom-client':
    'plugins/metrics/prometheus/text-format.ts: the module of its registry, and what that asks of a metric',
  ws: 'core/bus/ws-internals.ts: frames, and the socket below a WebSocket'
}
