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
