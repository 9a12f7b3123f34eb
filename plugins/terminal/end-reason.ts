/** Why a session has ended, as clients and the audit log are told it. */
export const endReasons = {
  /** Its shell has. */
  exited: 'the shell ended',
  /** Nobody was attached for a minute. */
  left: 'nobody came back to it',
  /** The same from the beginning. */
  unopened: 'nobody opened it',
  /** Nothing was typed and nothing written. */
  idle: 'nothing happened in it for too long',
  'access-lost': 'whoever opened it may not any more, or is signed out',
  'application-deleted': 'the application was deleted',
  'container-replaced': 'another container serves the application',
  'container-stopped': 'the container stopped',
  'not-started': 'the shell could not be started',
  'engine-lost': 'the container engine went away',
  'plugin-stopped': 'terminals were turned off, or the platform was stopped',
  /** It was killed, or its machine was. */
  'platform-lost': 'the platform went away'
} as const
export type EndReason = keyof typeof endReasons
