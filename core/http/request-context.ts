import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { type Caller, type Page, Problem, type ProjectId, projectRoleFor, type Reach } from 'busbar/sdk'
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

/**
 * One request as the kernel sees it, and what a handler is given. The caller and the project are set by
 * the guard and can be read only: a handler that assigns them gets an error, and audit reads the truth.
 */
export class RequestContext {
  readonly startedAt = performance.now()
  #caller: Caller = anonymous
  #project: ProjectId | undefined
  #abort: AbortController | undefined
  #abortReason: unknown
  #isExpired = false
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
    return async (projectId: string): Promise<ProjectId> => await this.#require(projectId)
  }

  async #require(projectId: string): Promise<ProjectId> {
    const caller = this.#caller
    if (caller.kind === 'anonymous') throw new Problem(404, 'E_NOT_FOUND', 'not found')
    const { refused, ...decision } = await this.projects.decideProject(
      caller,
      projectId,
      projectRoleFor(this.record.access)
    )
    if (refused !== null) throw new Problem(refused.status, refused.code, refused.message, refused.details)
    return (decision as { project: ProjectId }).project
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
    const decide = async () =>
      await projects.decide(caller, access, params as Record<string, string | undefined>)
    // What cannot be decided is refused.
    const look = (): void => {
      void decide().then(({ refused }) => {
        if (refused !== null) lost()
      }, lost)
    }
    // Where no project is concerned, none that changes matters.
    const unwatch = this.#project === undefined ? undefined : projects.watch(caller, this.#project, look)
    // It may have been lost since the guard looked.
    look()
    const release = credentials.hold(caller, lost)
    return () => {
      release()
      unwatch?.()
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
      this.#expire = reject
      try {
        work.then(
          result => {
            if (this.#isExpired) this.#endLate({ result, failed: false })
            // A long list must not be kept until the client has read all of its text.
            this.#expire = undefined
            resolve(result)
          },
          (error: unknown) => {
            if (this.#isExpired) this.#endLate({ result: undefined, failed: true })
            reject(faultOf(error))
          }
        )
      } catch (error) {
        // Not every thenable is a promise.
        reject(faultOf(error))
      }
    })
  }

  #endLate(end: LateEnd): void {
    // What cannot be noted leaves the outcome unknown, which is what is said of it then.
    void this.whenLate?.(end).catch(() => {})
    discardResult(end.result)
  }

  /** Answers in place of a handler that takes too long; its signal aborts. */
  expire(problem: Problem): void {
    this.abort(problem)
    this.#isExpired = this.#expire !== undefined
    this.#expire?.(problem)
  }
}
