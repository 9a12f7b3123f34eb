import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import {
  type Caller,
  type Page,
  Problem,
  type ProjectId,
  type ProjectRole,
  projectRoleFor,
  type Reach
} from 'busbar/sdk'
import { type ProjectAccess, reachOf } from '../access/project-access.js'
import type { CredentialWatch } from '../auth/credential-watch.js'
import type { RouteRecord } from '../declarations/records.js'
import { faultOf } from '../frames/fault.js'
import { inFrame } from '../frames/frames.js'
import { discardResult } from './discard-result.js'

const anonymous: Caller = Object.freeze({ kind: 'anonymous' })
const nowhere: Reach = Object.freeze({ callerId: null, userId: null, pins: Object.freeze([]) })

export interface Client {
  readonly ip: string
  readonly secure: boolean
}

/** How a handler ended after its time. */
interface LateEnd {
  readonly result: unknown
  readonly failed: boolean
}

const failedLate: LateEnd = Object.freeze({ result: undefined, failed: true })

/**
 * One request as the kernel sees it, and what a handler is given. The caller and the project are set by
 * the guard and can be read only: a handler that assigns them gets an error, and audit reads the truth.
 */
export class RequestContext {
  readonly startedAt = performance.now()
  #caller: Caller = anonymous
  #project: ProjectId | undefined
  /** What was let in by `requireProject`, with the role that it took. */
  #required: Map<ProjectId, ProjectRole> | undefined
  #abort: AbortController | undefined
  #abortReason: unknown
  #expire: ((error: Problem) => void) | undefined
  query: unknown = undefined
  body: unknown = undefined
  /** Of a list. */
  page: Page | undefined = undefined
  idempotencyKey: string | undefined
  /** Told how a handler ended that another answer had been given for. */
  whenLate: ((end: LateEnd) => Promise<void>) | undefined
  /** Among the requests under way. */
  place = -1
  /** Called when the answer is closed, in full or not, by the one listener that a request has for that. */
  whenClosed: (() => void) | undefined

  constructor(
    readonly raw: IncomingMessage,
    readonly response: ServerResponse,
    readonly record: RouteRecord,
    readonly params: Readonly<Record<string, unknown>>,
    readonly client: Client,
    readonly requestId: string,
    readonly projects: ProjectAccess,
    readonly credentials: CredentialWatch
  ) {}

  get caller(): Caller {
    return this.#caller
  }
  get project(): ProjectId | undefined {
    return this.#project
  }
  get headers(): IncomingHttpHeaders {
    return this.raw.headers
  }
  get ip(): string {
    return this.client.ip
  }
  get secure(): boolean {
    return this.client.secure
  }
  get reach(): Reach {
    return this.#caller.kind === 'anonymous' ? nowhere : reachOf(this.#caller)
  }

  /** Made when it is first asked for: most handlers never do, and a controller costs more than a lookup. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#abortReason !== undefined) this.#abort.abort(this.#abortReason)
    return this.#abort.signal
  }

  // A function for itself, because handlers take it out: `({ requireProject }) => …`.
  get requireProject() {
    return async (projectId: string, role?: ProjectRole): Promise<ProjectId> =>
      await this.#require(projectId, role ?? projectRoleFor(this.record.access))
  }

  async #require(projectId: string, role: ProjectRole): Promise<ProjectId> {
    const caller = this.#caller
    if (caller.kind === 'anonymous') throw new Problem(404, 'E_NOT_FOUND', 'not found')
    const { refused, ...decision } = await this.projects.decideProject(caller, projectId, role)
    if (refused !== null) throw new Problem(refused.status, refused.code, refused.message, refused.details)
    const { project } = decision as { project: ProjectId }
    this.#required ??= new Map()
    this.#required.set(project, role)
    return project
  }

  admit(caller: Caller, project: ProjectId | undefined): void {
    this.#caller = caller
    this.#project = project
  }

  /** Calls `lost` when the caller may no longer go where the guard has let them in; returns how to stop. */
  watchAccess(lost: () => void): () => void {
    const {
      record: { access },
      params,
      projects,
      credentials
    } = this
    const caller = this.#caller
    if (caller.kind === 'anonymous' || access.kind === 'public') return () => {}
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      lost()
    }
    const required = [...(this.#required ?? [])]
    const isRefused = async (): Promise<boolean> => {
      const own = await projects.decide(caller, access, params as Record<string, string | undefined>)
      if (own.refused !== null) return true
      for (const [project, role] of required)
        if ((await projects.decideProject(caller, project, role)).refused !== null) return true
      return false
    }
    // What cannot be decided is refused.
    const look = (): void => {
      void isRefused().then(refused => {
        if (refused) end()
      }, end)
    }
    // Where no project is concerned, none that changes matters.
    const concerned = [
      ...(this.#project === undefined ? [] : [this.#project]),
      ...required.map(([project]) => project)
    ]
    const stops = concerned.map(project => projects.watch(caller, project, look))
    // It may have been lost since the guard looked.
    look()
    stops.push(credentials.hold(caller, end))
    return () => {
      isOver = true
      for (const stop of stops) stop()
    }
  }

  abort(reason: unknown): void {
    this.#abortReason ??= reason
    const controller = this.#abort
    if (controller !== undefined)
      inFrame(this.record.plugin, () => {
        controller.abort(reason)
      })
  }

  /** The work's result, or the problem `expire` is called with, whichever comes first. */
  orExpired<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.follow(work, resolve, reject)
    })
  }

  /** The same with callbacks, one of which is called: most requests wait for this alone, and a promise on the way costs. */
  follow<T>(work: PromiseLike<T>, resolve: (result: T) => void, reject: (error: unknown) => void): void {
    let state: 'waiting' | 'expired' | 'over' = 'waiting'
    this.#expire = problem => {
      state = 'expired'
      reject(problem)
    }
    // Not every thenable is a promise: one may call both, or again.
    const isFirst = (late: LateEnd): boolean => {
      const before = state
      state = 'over'
      if (before === 'expired') this.#endLate(late)
      // A long list must not be kept until the client has read all of its text.
      if (before === 'waiting') this.#expire = undefined
      return before === 'waiting'
    }
    const fail = (error: unknown): void => {
      if (isFirst(failedLate)) reject(faultOf(error))
    }
    try {
      work.then(result => {
        if (isFirst({ result, failed: false })) resolve(result)
      }, fail)
    } catch (error) {
      fail(error)
    }
  }

  #endLate(end: LateEnd): void {
    // What cannot be noted leaves the outcome unknown, which is what is said of it then.
    void this.whenLate?.(end).catch(() => {})
    discardResult(end.result)
  }

  /** Answers in place of a handler that takes too long; its signal aborts. */
  expire(problem: Problem): void {
    this.abort(problem)
    const expire = this.#expire
    this.#expire = undefined
    expire?.(problem)
  }
}
