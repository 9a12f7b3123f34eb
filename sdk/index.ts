/** What plugins import. What the kernel alone needs of these files it imports from them: `docs/sdk-surface.txt` is the whole of it. */

export * from './access.js'
export * from './address.js'
export * from './bounded.js'
export * from './caller.js'
export * from './channel.js'
export * from './contributed-answer.js'
export * from './credential.js'
export { cutMark, cutText } from './cut-text.js'
export { described, named, withValues } from './described-schema.js'
export {
  type ConcernedUser,
  concerning,
  isProblem,
  Problem,
  type ProblemKind,
  problemTable,
  withRemedy
} from './errors.js'
export * from './event.js'
export { FairQueue } from './fair-queue.js'
export { instantIn } from './instant.js'
export * from './job.js'
export * from './kernel.js'
export * from './keyed-mutex.js'
export { LargeTotals } from './large-totals.js'
export { type Lease, leaseMs, prolongedLease, withLease } from './lease.js'
export {
  type CursorRows,
  countedRows,
  type ListDeclarer,
  type ListRequest,
  type ListSpec,
  type PageLimits,
  pagedList,
  pageOf,
  type Rows
} from './list.js'
export { LiveFeed } from './live-feed.js'
export * from './migration.js'
export * from './notification.js'
export {
  type AnyPlugin,
  type Contributor,
  definePlugin,
  type Health,
  type PluginDefinition,
  type ServiceBinder,
  type StartContext
} from './plugin.js'
export * from './public-link.js'
export {
  type Cookie,
  type DownloadReply,
  download,
  type RedirectReply,
  type Reply,
  type ReplyOptions,
  redirect,
  reply,
  type SseFrame,
  type StreamReply,
  sse,
  type ValueReply
} from './reply.js'
export * from './resource.js'
export { keepForDays, type Retention } from './retention.js'
export * from './route.js'
export { RunLog } from './run-log.js'
export * from './schedule.js'
export * from './schema.js'
export * from './serial.js'
export * from './service.js'
export {
  fromEnvironment,
  MisconfiguredError,
  type ParsedVariableOptions,
  type VariableOptions
} from './settings.js'
export * from './statistics.js'
export * from './table.js'
export * from './time-limit.js'
export * from './turns.js'
export * from './tx.js'
export * from './version.js'
export * from './waits.js'
export { Wakeable } from './wakeable.js'
