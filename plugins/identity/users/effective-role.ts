import type { Role } from 'busbar/sdk'

/** A token keeps what its owner was when it was made: promotion lifts no token, demotion lowers all. */
export const effectiveRole = (atIssue: Role, now: Role): Role =>
  atIssue === 'admin' && now === 'admin' ? 'admin' : 'member'
