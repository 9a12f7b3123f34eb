import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Static, TSchema } from '@sinclair/typebox'
import type { Access } from './access.js'
import type { AnonymousCaller, ProjectId, Reach, SessionCaller, SignedInCaller } from './caller.js'
import type { ProblemKind } from './errors.js'
import type { ListDeclarer } from './list.js'
import type { Reply } from './reply.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The names of the parameters in a path such as `/api/projects/:projectId/env`. */
export type ParamsOf<U extends string> = U extends `${string}:${infer P}/${infer R}`
  ? P | ParamsOf<R>
  : U extends `${string}:${infer P}`
    ? P
    : never

/**
 * What comes in and what goes out. A path parameter whose name ends in `Id` is a UUID unless `params`
 * says otherwise. Bodies are not coerced; keys a body schema does not name are dropped. `response`
 * maps a status to a schema (or null: no body); an answer is written by it and holds nothing else.
 */
export interface RouteSchema<P extends string = string> {
  readonly params?: { readonly [K in P]?: TSchema }
  readonly query?: TSchema
  readonly body?: TSchema
  readonly response?: Readonly<Record<number, TSchema | null>>
}

/**
 * How a body is read: `json` (the default with a body schema), `none` (the default without: a body is
 * drained and ignored), `raw` (a Buffer, for signed webhooks), `stream` (a Readable).
 */
export type BodyKind = 'json' | 'none' | 'raw' | 'stream'

/** What is written to the audit log, before the answer is sent, with the outcome. */
export interface Audit<P extends string = string> {
  /** `create_application`: a verb and the resource, as they are shown in the audit log. */
  readonly action: string
  /** The kind of resource: `application`. */
  readonly resource: string
  /** Where the resource's id comes from: a path parameter, or a field of the answer. Without it a `user` is the caller. */
  readonly id?: { readonly param: P } | { readonly result: string }
  /** Another action when this field of the result is true: `regenerate_deploy_hook`. */
  readonly otherwise?: { readonly action: string; readonly when: string }
  /** The action when it fails, where the log tells the two apart: `login_failed`. */
  readonly failure?: string
  /** Where a caller without a credential says who they are: the field of the body, or else of the answer, with their e-mail address. */
  readonly claims?: string
  /** Nothing is recorded when the answer has this field: the operation is only half done. */
  readonly unless?: string
  /** Fields of the answer that are recorded too, among the details of a success; no secrets. */
  readonly keeps?: readonly string[]
}

/**
 * A budget of its own for a route, by user, or by address (an IPv6 address by its /64) for public routes. Beyond it the
 * answer is 429 with `Retry-After`, before a body is read. A public route without one still has a ceiling that only a
 * flood meets: 3 000 requests a minute for a GET, 60 for anything else.
 */
export interface RouteLimit {
  readonly max: number
  readonly windowSeconds: number
}

export interface RouteSpec<U extends string, A extends Access, S extends RouteSchema, Self> {
  readonly method: Method
  readonly url: U
  readonly access: A
  /**
   * The operation's name in the OpenAPI description, from which clients make the names of functions: `CreateProject`.
   * Capitalised, `A-Z a-z 0-9`, the only one in the plugin, and never changed: of a third-party plugin the description puts the
   * plugin's id before it. Without one, it is made of method and path.
   */
  readonly operationId?: string
  /** One line for the OpenAPI description and the docs. */
  readonly summary: string
  /** The heading under which the operation is listed: a resource group of the API. */
  readonly group?: string
  readonly schema?: S
  /**
   * False for what is no operation but a file of a page, or leads to one: a public `GET` without JSON. The OpenAPI description, and
   * the clients that are made of it, leave it out.
   */
  readonly documented?: boolean
  /**
   * What the operation does beyond the summary: what it changes, replaces or sets off, in sentences. For the OpenAPI
   * description, which adds by itself who may call it.
   */
  readonly description?: string
  /**
   * What its `limitKey`, `precondition` and handler refuse, with all that the services refuse that they use. For the OpenAPI
   * description, which adds by itself what the platform refuses for every operation. `{ ...problems.busy, message: '…' }`
   * says it in other words.
   */
  readonly problems?: readonly ProblemKind[]
  /** Headers of a success that tell something, with what they tell: `{ 'X-Truncated': described(Type.Boolean(), '…') }`. */
  readonly responseHeaders?: Readonly<Record<string, TSchema>>
  /** The content type of an answer that is no JSON: `text/csv`, `text/event-stream`. For the description. */
  readonly produces?: string
  readonly body?: BodyKind
  /**
   * Bytes; 1 MiB unless set, and 16 KiB for a public route: one that takes more says why anonymous callers may send it.
   * A body beyond it is 413: at once when `Content-Length` announces it, else as soon as so much has come.
   */
  readonly bodyLimit?: number | { readonly bytes: number; readonly reason: string }
  /** How long the handler may take, with `limitKey` and `precondition`; 30 000 unless set. Streams are not limited. */
  readonly timeoutMs?: number
  readonly audit?: Audit<NoInfer<ParamsOf<U>>>
  readonly limit?: RouteLimit
  /**
   * For a public route with a `limit` that is called with a credential of its own, from addresses that many share (a host
   * of repositories): what its limit counts by, such as the id of what the credential is of. Undefined for an
   * unknown credential, which counts for the address as usual. Asked before the body is read, of each request below the ceiling for
   * floods: a look-up, no more.
   */
  readonly limitKey?: (
    request: Omit<RouteRequest<U, A, S>, 'body' | 'query'>,
    self: Self
  ) => string | undefined | Promise<string | undefined>
  /**
   * Honour `Idempotency-Key`: the same caller, path and key within 24 h get the first answer with its headers and cookies, which
   * is kept sealed. For each POST that makes or starts something; elsewhere the header is refused (400), so that nobody relies on
   * it. Neither its body nor its answer may be a stream.
   */
  readonly idempotent?: boolean
  /**
   * Asked before the body is read, for what its content cannot change (the set-up of a platform that has been set up):
   * a `Problem` thrown here is the answer, the body stays unread and nothing is written to the audit log.
   */
  readonly precondition?: (
    request: Omit<RouteRequest<U, A, S>, 'body' | 'query'>,
    self: Self
  ) => void | Promise<void>
  /**
   * What the answer of a `GET` is made of as it is now, as a text, found by a look that costs a fraction of the answer: `versionOfRows`
   * makes it of rows. It must be another text as soon as the answer to this caller is another one, whoever changed it: with what is
   * joined, what other plugins say, and what the process remembers. While it stays, who has the answer is told so (304) and others get
   * the one that the kernel has kept, and the handler is not called. Undefined where it is not known.
   */
  readonly version?: (request: RouteRequest<U, A, S>, self: Self) => Version | Promise<Version>
  readonly handler: (request: RouteRequest<U, A, S>, self: Self) => Answer<S> | Promise<Answer<S>>
}

type Version = string | undefined

type SchemaOf<S, K extends PropertyKey, Otherwise> = S extends { readonly [X in K]: infer T extends TSchema }
  ? Static<T>
  : Otherwise

type CallerOf<A extends Access> = A extends { kind: 'public' }
  ? AnonymousCaller | SignedInCaller
  : A extends { kind: 'session' }
    ? SessionCaller
    : SignedInCaller

type ProjectOf<A extends Access> = A extends { project: { param: string } } ? ProjectId : undefined

type ParamTypes<U extends string, A extends Access, S> = {
  readonly [K in ParamsOf<U>]: A extends { project: { of: string } }
    ? string
    : A extends { project: { param: K } }
      ? ProjectId
      : S extends { params: { readonly [X in K]: infer T extends TSchema } }
        ? Static<T>
        : string
}

export interface RouteRequest<U extends string = string, A extends Access = Access, S = RouteSchema> {
  readonly params: ParamTypes<U, A, S>
  readonly query: SchemaOf<S, 'query', Record<string, unknown>>
  /** By `body`: the checked JSON, a Buffer, a Readable, or undefined. */
  readonly body: SchemaOf<S, 'body', Buffer | Readable | undefined>
  readonly headers: IncomingHttpHeaders
  readonly caller: CallerOf<A>
  /** The checked project, where the access rule names one. */
  readonly project: ProjectOf<A>
  /** What the caller may see in lists. */
  readonly reach: Reach
  /**
   * Checks a project id from a query or a body as the guard checks one from the path: 403 outside the
   * token's pins, 404 when it is not visible to the caller, 403 when the operation takes more than their role there.
   */
  readonly requireProject: (projectId: string) => Promise<ProjectId>
  /** The client's address; `X-Forwarded-For` is believed from trusted proxies only. */
  readonly ip: string
  readonly requestId: string
  /** True when the request came over TLS, directly or through a trusted proxy. */
  readonly secure: boolean
  /** The `Idempotency-Key` header of a route that honours it. */
  readonly idempotencyKey: string | undefined
  /** Aborts when the client goes away, the handler's time is up, or the plugin must stop. */
  readonly signal: AbortSignal
}

type Values<R> =
  R extends Readonly<Record<number, unknown>>
    ? { [K in keyof R]: R[K] extends TSchema ? Static<R[K]> : null }[keyof R]
    : unknown

/** What a handler returns: the value of a declared response (sent with the lowest 2xx status), or a `Reply`. */
export type Answer<S> = S extends { response: infer R } ? Values<R> | Reply<Values<R>> : unknown

export interface RouteDeclarer<Self> {
  <
    const U extends string,
    const A extends Access<NoInfer<ParamsOf<U>>>,
    const S extends RouteSchema<NoInfer<ParamsOf<U>>> = {}
  >(
    spec: RouteSpec<U, A, S, Self>
  ): void
  /** See `ListSpec`. */
  readonly list: ListDeclarer<Self>
}
