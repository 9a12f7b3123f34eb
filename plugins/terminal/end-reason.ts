/** Why a session has ended, as clients and the audit log are told it. */
export type EndReason =
  /** Its shell has. */
  | 'exited'
  /** Nobody was attached for a minute. */
  | 'left'
  /** Nobody attached to it in its first minute. */
  | 'unopened'
  /** Nothing was typed and nothing written for too long. */
  | 'idle'
  /** Whoever opened it may not any more, or is signed out. */
  | 'access-lost'
  | 'application-deleted'
  /** Another one serves the application. */
  | 'container-replaced'
  | 'container-stopped'
  /** Its shell could not be started. */
  | 'not-started'
  /** The container engine went away. */
  | 'engine-lost'
  /** Terminals were turned off, or the platform was stopped. */
  | 'plugin-stopped'
  /** The process in which it ran was killed. */
  | 'platform-lost'
