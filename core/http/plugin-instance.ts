import { randomUUID } from 'node:crypto'
import { isReadable } from 'node:stream'
import { type BodyKind, cutText, type Log, Problem, type Reply, type ReplyOptions } from 'busbar/sdk'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest
} from 'fastify'
import { isReply } from '../../sdk/reply.js'
import { mapAwaitable } from '../clock/map-awaitable.js'
import { whenLate } from '../clock/waits.js'
import type { RouteRecord } from '../declarations/records.js'
import { callPlugin, faultOf } from '../frames/fault.js'
import { inFrame } from '../frames/frames.js'
import { explainFaults, faultsOfQuery, longestField } from '../schemas/schema-fault.js'
import { badTextField, faultsOfBody, holdsBadText, validatorOf } from '../schemas/schemas.js'
import { answerValue } from './answer-value.js'
import { answerWriter } from './answer-writer.js'
import { cookieHeader, sendProblem } from './answers.js'
import { bodyParser } from './body-parser.js'
import { discardResult } from './discard-result.js'
import type { Guard } from './guard.js'
import { type AuditWriter, callHandler, isThenable, outcome } from './handler-call.js'
import type { Idempotency } from './idempotency.js'
import { InFlight } from './in-flight.js'
import type { KeptAnswers } from './kept-answers.js'
import type { PlatformRequest } from './platform-request.js'
import { toProblem } from './problems.js'
import { type AnswerVersion, answerVersion, sendKnown, sendText } from './representation.js'
import type { RequestContext } from './request-context.js'
import type { RequestTarget } from './route-table.js'
import type { StreamCap } from './stream-cap.js'
import { checkHeartbeat, downloadHead, sendDownload, sendEvents } from './streams.js'
import { isBodyComing } from './unread-body.js'

/** What the instances of all plugins share. */
export interface InstanceParts {
  readonly audit: AuditWriter
  readonly idempotency: Idempotency
  readonly secureCookies: boolean
  readonly streams: StreamCap
  readonly guard: Pick<Guard, 'admitByKey'>
  readonly kept: KeptAnswers
}

interface InstanceOptions extends InstanceParts {
  readonly plugin: string
  readonly routes: readonly RouteRecord[]
  readonly self: object
  readonly log: Log
}

/** What the edge has handed over with the request; no plugin ever sees the raw one. */
const contextOf = ({ raw }: FastifyRequest): RequestContext => {
  const { context } = raw as PlatformRequest
  if (context === undefined) throw new Error('a request reached an instance without passing the guard')
  return context
}

/**
 * The small Fastify instance of one running plugin. It owns nothing: turning the plugin off drops it.
 * Validators and serialisers are compiled when a route is first used.
 */
export class PluginInstance implements RequestTarget {
  readonly #inFlight = new InFlight()
  /** Requests for it that the guard still decides about. */
  #undecided = 0
  #isOver = false
  #idle: (() => void) | undefined

  private constructor(
    readonly options: InstanceOptions,
    readonly fastify: FastifyInstance
  ) {}

  static async create(options: InstanceOptions): Promise<PluginInstance> {
    const fastify = Fastify({
      exposeHeadRoutes: false,
      logger: false,
      routerOptions: { maxParamLength: 512 }
    })
    const declared = new Set(options.routes.map(({ method, url }) => `${method} ${url}`))
    fastify.addHook('onRoute', ({ method, url }) => {
      if (!declared.has(`${String(method)} ${url}`))
        throw new Error(`the route ${String(method)} ${url} has no record`)
    })
    fastify.setErrorHandler((error: FastifyError, request, reply) => {
      answerError(error, contextOf(request), reply, options.log)
    })
    fastify.setNotFoundHandler((_request, reply) => {
      void reply.code(404).send({ error: 'not found', code: 'E_NOT_FOUND' })
    })
    fastify.setValidatorCompiler(({ schema, httpPart }) => {
      // Compiled on first use: at start most routes are never called.
      const use = httpPart === 'body' ? 'body' : 'text'
      return (data: unknown) => {
        const valid = validatorOf(schema as object, use)
        if (valid(data) === true) return { value: data }
        const errors =
          use === 'body'
            ? faultsOfBody(schema as object, data, valid.errors)
            : faultsOfQuery(data, valid.errors)
        return { error: invalid(use === 'body' ? 'E_BODY_INVALID' : 'E_QUERY_INVALID', errors, httpPart) }
      }
    })
    fastify.setSerializerCompiler(answerWriter)
    const kinds: readonly BodyKind[] = ['json', 'none', 'raw', 'stream']
    const run = randomUUID()
    for (const kind of kinds) {
      const routes = options.routes.filter(route => route.body === kind)
      if (routes.length === 0) continue
      const scopeOf = async (scope: FastifyInstance): Promise<void> => {
        await scope.register(bodyParser, { kind })
        for (const route of routes) addRoute(scope, route, options, run)
      }
      // For one without a name fastify looks whether any module that was ever required is it.
      await fastify.register(Object.assign(scopeOf, { [Symbol.for('fastify.display-name')]: kind }))
    }
    await fastify.ready()
    return new PluginInstance(options, fastify)
  }

  get inFlight(): number {
    return this.#inFlight.contexts.length
  }

  /** For a request that is still being decided about, and may be dispatched then: a drain waits for it. Settles like `decision`. */
  async awaiting(decision: Promise<void>): Promise<void> {
    this.#undecided += 1
    try {
      await decision
    } finally {
      this.#undecided -= 1
      this.#noteIdle()
    }
  }

  get #isIdle(): boolean {
    return this.inFlight === 0 && this.#undecided === 0
  }

  #noteIdle(): void {
    if (this.#isIdle) this.#idle?.()
  }

  /** Runs an admitted request. */
  dispatch(context: RequestContext): void {
    // It took longer to decide about than a drain waits: what would serve it has stopped.
    if (this.#isOver) {
      sendProblem(context.response, stopping)
      return
    }
    this.#inFlight.add(context)
    const request = context.raw as PlatformRequest
    request.context = context
    context.whenClosed = () => {
      this.#inFlight.delete(context)
      request.context = undefined
      context.abort(clientGone)
      this.#noteIdle()
    }
    this.fastify.routing(request, context.response)
  }

  /** Answers 503 for handlers whose time is up. Called by the edge's one timer. */
  expireOverdue(now: number): void {
    for (const context of [...this.#inFlight.contexts]) {
      if (now - context.startedAt > context.record.timeoutMs && !context.response.headersSent) {
        context.expire(
          new Problem(
            503,
            'E_TIMEOUT',
            `the operation took longer than ${context.record.timeoutMs / 1000} s; it may still take effect`
          )
        )
      }
    }
  }

  /** Waits for the requests under way; streams are ended at once, the rest when the time is up. */
  async drain(timeoutMs: number): Promise<void> {
    for (const context of [...this.#inFlight.contexts])
      if (context.response.headersSent) context.abort(stopping)
    if (!this.#isIdle) {
      const idle = new Promise<void>(resolve => {
        this.#idle = resolve
      })
      await whenLate(idle, timeoutMs, () => {
        this.#idle?.()
      })
    }
    this.#isOver = true
    for (const context of [...this.#inFlight.contexts]) context.expire(stopping)
  }
}

/** `field` is the first one; `faults` has them all. */
function invalid(code: string, errors: Parameters<typeof explainFaults>[0], part = 'request'): Problem {
  const { message, faults } = explainFaults(errors, part)
  return new Problem(400, code, message, { field: faults[0]?.field ?? '', faults })
}

const clientGone = new Problem(499, 'E_CLIENT_GONE', 'the client went away')
/** A body that is refused as a whole, because of one of its fields. */
const badText = (body: unknown): Problem =>
  new Problem(
    400,
    'E_BODY_INVALID',
    'the body holds a character that cannot be kept: NUL, or half of a surrogate pair',
    { field: cutText(badTextField(body), longestField) }
  )
export const stopping = new Problem(503, 'E_PLUGIN_STOPPING', 'the plugin is being turned off')

/** `run` is of this instance alone: another one may have other code, settings and memories. */
function addRoute(scope: FastifyInstance, record: RouteRecord, options: InstanceOptions, run: string): void {
  // A body whose fields are all optional may be left out; without one, required fields are named in the error.
  const preValidation = (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
    if (request.body === undefined) request.body = {}
    done()
  }
  const preHandler = (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    done(holdsBadText(request.body) ? badText(request.body) : undefined)
  }
  const response = Object.fromEntries(
    Object.entries(record.schema.response ?? {}).filter(([, schema]) => schema !== null)
  )
  scope.route({
    method: record.method,
    url: record.url,
    bodyLimit: record.bodyLimit,
    schema: {
      ...(record.schema.query === undefined ? {} : { querystring: record.schema.query }),
      ...(record.schema.body === undefined ? {} : { body: record.schema.body }),
      ...(Object.keys(response).length === 0 ? {} : { response })
    },
    ...onRequest(record, options),
    ...(record.body === 'json' ? { preValidation, preHandler } : {}),
    handler: (request, reply) => {
      const context = contextOf(request)
      context.query = request.query
      context.body = record.body === 'none' ? undefined : request.body
      if (!options.idempotency.concerns(context))
        return record.version !== undefined
          ? sendVersioned(run, context, reply, options)
          : answer(context, reply, options)
      return options.idempotency.run(
        context,
        async () => await outcome(context, options),
        async result => await send(result, context, reply, options)
      )
    }
  })
}

function onRequest(record: RouteRecord, options: InstanceOptions) {
  const hooks = [
    ...(record.limitKey === undefined ? [] : [limitHook(record, options)]),
    ...(record.precondition === undefined ? [] : [preconditionHook(record, options)])
  ]
  return hooks.length === 0 ? {} : { onRequest: hooks }
}

/** The limit of a route that gives its key itself. */
const limitHook =
  ({ plugin, limitKey }: RouteRecord, { self, guard }: InstanceOptions) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const context = contextOf(request)
    const key = await context.orExpired(
      callPlugin(plugin, async () => await limitKey?.(context as never, self))
    )
    if (guard.admitByKey(context, key)) return undefined
    return reply.hijack()
  }

/** Before the body is read: what this throws is answered while the body is still on its way. */
const preconditionHook =
  ({ plugin, precondition }: RouteRecord, { self }: InstanceOptions) =>
  async (request: FastifyRequest): Promise<void> => {
    const context = contextOf(request)
    await context.orExpired(
      callPlugin(plugin, async () => {
        await precondition?.(context as never, self)
      })
    )
  }

// A request passes here often: functions that have nothing to wait for hand on promises and make none.

/** Calls the handler and sends what it answers: what fastify awaits. */
function answer(context: RequestContext, reply: FastifyReply, options: InstanceOptions): unknown {
  if (context.record.audit !== undefined)
    return mapAwaitable(outcome(context, options), result => send(result, context, reply, options))
  const called = callHandler(context, options)
  if ('result' in called) return send(called.result, context, reply, options)
  return {
    // biome-ignore lint/suspicious/noThenProperty: awaited once, by fastify, which needs no promise for that
    then(resolve: (sent: unknown) => void, reject: (error: unknown) => void): void {
      context.follow(
        called.work,
        value => {
          let sent: unknown
          try {
            sent = send(value, context, reply, options)
          } catch (error) {
            reject(error)
            return
          }
          if (isThenable(sent)) sent.then(resolve, reject)
          else resolve(sent)
        },
        reject
      )
    }
  }
}

/** What is known of the answer is asked first: the answer itself may not have to be made. */
async function sendVersioned(
  run: string,
  context: RequestContext,
  reply: FastifyReply,
  options: InstanceOptions
): Promise<unknown> {
  const { plugin, version } = context.record
  const found = await context.orExpired(
    callPlugin(plugin, async () => await version?.(context as never, options.self))
  )
  // A plugin in JavaScript may answer anything: nothing but a text says which answer it is.
  const known = typeof found === 'string' ? answerVersion(run, context, found) : undefined
  if (known !== undefined) {
    const sending = sendKnown(known, context, reply, options.kept)
    if (sending !== null) return await sending
  }
  return await send(await outcome(context, options), context, reply, options, known)
}

function send(
  result: unknown,
  context: RequestContext,
  reply: FastifyReply,
  options: InstanceOptions,
  version?: AnswerVersion
): unknown {
  if (context.response.destroyed) discardResult(result)
  if (isReply(result))
    return sendReply(result, context, reply, options, version).catch((error: unknown) => {
      discardResult(result)
      throw error
    })
  void reply.code(context.record.successStatus)
  return sendValue(result, undefined, context, reply, options, version)
}

function sendValue(
  value: unknown,
  given: ReplyOptions | undefined,
  context: RequestContext,
  reply: FastifyReply,
  { kept }: InstanceOptions,
  version: AnswerVersion | undefined
): unknown {
  const { record } = context
  return answerValue(
    value,
    reply,
    record,
    record.conditional && reply.statusCode === 200 && given?.cookies === undefined
      ? text => sendText({ text, headers: given?.headers, version }, context, reply, kept)
      : text => {
          void reply.send(text)
        }
  )
}

async function sendReply(
  result: Reply,
  context: RequestContext,
  reply: FastifyReply,
  options: InstanceOptions,
  version: AnswerVersion | undefined
): Promise<unknown> {
  const { secureCookies, streams, log } = options
  switch (result.kind) {
    case 'value': {
      const { headers = {}, cookies = [] } = result.options
      void reply.code(result.status).headers(headers)
      for (const cookie of cookies)
        void reply.header('set-cookie', cookieHeader(cookie, secureCookies || context.secure))
      // Without a declaration, no value is no body.
      return result.value === null && context.record.schema.response?.[result.status] === undefined
        ? await reply.send()
        : await sendValue(result.value, result.options, context, reply, options, version)
    }
    case 'redirect':
      return await reply.code(302).header('location', result.url).send()
    case 'sse': {
      const release = streams.admit(context.caller)
      return await callPlugin(context.record.plugin, async () => {
        // Before the head is written: what has no iterator is a fault that can still be answered.
        checkHeartbeat(result)
        const iterator = result.frames[Symbol.asyncIterator]()
        void reply.hijack()
        await sendEvents(iterator, result, context, log)
        return reply
      }).finally(release)
    }
    case 'download':
      if (!isReadable(result.source)) throw new TypeError('a download was answered without a stream to read')
      return await inFrame(context.record.plugin, async () => {
        const head = downloadHead(result)
        void reply.hijack()
        await sendDownload(result, head, context, log)
        return reply
      })
  }
}

function answerError(
  error: FastifyError | Problem,
  context: RequestContext,
  reply: FastifyReply,
  log: Log
): void {
  const { response } = context
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const problem = toProblem(error, context.record.bodyLimit)
  if (problem.status >= 500 && problem !== error) {
    log.error(
      {
        err: faultOf(error),
        requestId: context.requestId,
        plugin: context.record.plugin,
        route: `${context.record.method} ${context.record.url}`
      },
      'a request failed'
    )
  }
  void reply.hijack()
  // The rest of a refused body is not read: the connection would wait for it.
  if (isBodyComing(context.raw)) response.setHeader('connection', 'close')
  sendProblem(response, problem)
}
