/** The bounds, in seconds, by which durations of requests are told apart. */
export const requestDurationBounds: readonly number[] = Object.freeze([
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10
])

/** What has been answered on one route since its plugin was started. */
export interface RouteStatistics {
  readonly plugin: string
  readonly method: string
  /** As it was declared: `/api/projects/:projectId`. */
  readonly route: string
  /** How often, by status; 499 where the client went away before there was one. */
  readonly answers: ReadonlyMap<number, number>
  /** Of answers that are no streams: how many took at most so long as each of `requestDurationBounds`, and longer than the one before; the last number is of those that took longer than all. */
  readonly durations: readonly number[]
  /** How long these took together. */
  readonly seconds: number
}

/** Connections to the database that one owner may hold. */
export interface ConnectionStatistics {
  /** The id of a plugin. */
  readonly plugin: string
  readonly held: number
  readonly limit: number
  /** Statements that wait for one. */
  readonly waiting: number
}

/** Jobs of one lane, in all processes. */
export interface JobStatistics {
  readonly lane: string
  /** Waiting for the first time, for a worker or for their time. */
  readonly pending: number
  readonly active: number
  /** Waiting after an attempt that failed. */
  readonly retry: number
  /** Out of attempts. */
  readonly failed: number
}

/** Figures of this process. What counts, counts since it began, unless something else is said. */
export interface PlatformStatistics {
  readonly http: {
    /** Routes that have been asked for, of plugins that run. */
    readonly routes: readonly RouteStatistics[]
    /** What was refused before a route was found, by status. */
    readonly unrouted: ReadonlyMap<number, number>
    /** Requests under way, event streams among them. */
    readonly underWay: number
    readonly eventStreams: number
    readonly connections: number
  }
  readonly bus: {
    /** Open sockets on `/api/ws`. */
    readonly sockets: number
    /** Messages for subscribers of this process, each once. */
    readonly published: number
    /** Messages that none of them got, or nobody in another process: more were published than could be written or sent, or the database was away. */
    readonly dropped: number
    /** Copies that a client did not get, as it did not read. */
    readonly missed: number
    /** Clients that were disconnected for that. */
    readonly disconnected: number
  }
  readonly database: {
    /** The pool that all built-in plugins share; third-party ones have connections of their own. */
    readonly pool: {
      readonly limit: number
      readonly open: number
      readonly idle: number
      /** Statements that wait for a connection of it. */
      readonly waiting: number
    }
    readonly plugins: readonly ConnectionStatistics[]
  }
  /** Undefined while the database does not answer. */
  readonly jobs: readonly JobStatistics[] | undefined
  /** When the event loop stood still for longer than 200 ms; nothing where that is not watched. */
  readonly stalls: { readonly count: number; readonly seconds: number }
  /** By id. */
  readonly plugins: ReadonlyArray<{
    readonly id: string
    readonly isBuiltIn: boolean
    readonly state: string
  }>
}

/** For the plugin that shows how the platform is. */
export interface Statistics {
  /** As they are now; never rejects. It asks the database for the jobs, with a limit of five seconds. */
  read(): Promise<PlatformStatistics>
}
