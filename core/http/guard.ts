import type { ServerResponse } from 'node:http'
import {
  type Access,
  type Clock,
  type Contributions,
  type CredentialSource,
  isUuid,
  networkOf,
  Problem,
  type SignedInCaller
} from 'busbar/sdk'
import { isUuidSchema } from '../../sdk/schema.js'
import { decideCaller, invalidCredential, unauthorized } from '../access/decision.js'
import type { ProjectAccess } from '../access/project-access.js'
import type { Authenticate, Authentication } from '../auth/authentication.js'
import { checkCsrf } from '../auth/csrf.js'
import type { Refusal } from '../auth/refusal.js'
import { mapAwaitable } from '../clock/map-awaitable.js'
import type { RouteRecord } from '../declarations/records.js'
import type { Budget, RateLimiter } from '../limits/rate-limiter.js'
import { explainFault } from '../schemas/schema-fault.js'
import { validatorOf } from '../schemas/schemas.js'
import { sendProblem, sendText } from './answers.js'
import { setRateHeaders } from './rate-headers.js'
import type { RequestContext } from './request-context.js'

const minute = 60_000
const tokenBudget = 100
/** Of all tokens of a user, who makes as many as they like. It is not announced in headers: the tighter budget is the one to know of. */
const allTokensBudget = 1000
const sessionBudget = 600
/**
 * For public routes that declare no limit, or only one that is not of the address, by route and address: a load balancer that asks ten times a second stays
 * below it. It is not announced in headers, as it is nothing to plan with.
 */
const floodBudget = { GET: 3_000, other: 60 } as const

/**
 * The one order of answers: 401 → 429 → CSRF 403 → session-only 403 → scope 403 → role 403 → malformed
 * path id 400 → pin 403 → not visible 404. What comes after (body 400/413/415, conflict 409) is the
 * plugin's instance. It reads the kernel's record and nothing a plugin can touch.
 */
export class Guard {
  constructor(
    readonly authenticate: Authenticate,
    readonly projects: ProjectAccess,
    readonly limiter: RateLimiter,
    readonly clock: Clock,
    readonly sources: Contributions<CredentialSource, 'identity'>
  ) {}

  /**
   * True when the request may go on; otherwise it has been answered. What is remembered of the caller
   * and the project is decided about at once: a promise costs as much as a look-up.
   */
  admit(context: RequestContext): boolean | Promise<boolean> {
    const {
      record: { access },
      raw: { headers }
    } = context
    if (access.kind === 'public') {
      const who = addressOf(context)
      return (
        this.#withinFloodLimit(context, who) &&
        (context.record.limitKey !== undefined || this.#withinRouteLimit(context, who)) &&
        this.#hasGoodParams(context)
      )
    }
    return mapAwaitable(
      this.authenticate({ authorization: headers.authorization, cookie: headers.cookie }),
      found => this.#decide(found, context, access)
    )
  }

  /**
   * The limit of a route that gives its key itself. False when it is used up; then it has been answered.
   */
  admitByKey(context: RequestContext, key: string | undefined): boolean {
    return this.#withinRouteLimit(
      context,
      key === undefined ? `anonymous at ${addressOf(context)}` : `for:${key}`
    )
  }

  #decide(
    found: Authentication,
    context: RequestContext,
    access: Exclude<Access, { kind: 'public' }>
  ): boolean | Promise<boolean> {
    const { response, raw } = context
    if (found.kind !== 'caller')
      return refuse(response, found.kind === 'missing' ? unauthorized : invalidCredential)
    const { caller } = found
    if (
      !this.#withinUserLimit(response, caller) ||
      !this.#withinRouteLimit(context, `user:${caller.user.id}`)
    )
      return false
    if (caller.kind === 'session') {
      const forged = checkCsrf(raw.method ?? 'GET', raw.headers)
      if (forged !== null) return refuse(response, forged)
    }
    const refusal = decideCaller(caller, access)
    if (refusal !== null) return refuse(response, refusal)
    if (!this.#hasGoodParams(context)) return false
    return mapAwaitable(
      this.projects.decide(caller, access, context.params as Record<string, string | undefined>),
      decision => {
        if (decision.refused !== null) return refuse(response, decision.refused)
        if (caller.kind === 'token')
          this.sources.get('identity')?.admitted?.(caller, context.record, decision.project)
        context.admit(caller, decision.project)
        return true
      }
    )
  }

  #withinUserLimit(response: ServerResponse, caller: SignedInCaller): boolean {
    return caller.kind === 'token'
      ? this.#take(response, `token:${caller.tokenId}`, tokenBudget, minute) &&
          this.#withinBudget(response, `tokens:${caller.user.id}`, allTokensBudget, ' by all your tokens')
      : this.#take(response, `session:${caller.user.id}`, sessionBudget, minute)
  }

  /** Looked at last: the tighter budget is the one a client must know of. */
  #withinRouteLimit({ record: { method, url, limit }, response }: RequestContext, who: string): boolean {
    return (
      limit === undefined ||
      this.#take(response, `${method} ${url} ${who}`, limit.max, limit.windowSeconds * 1000)
    )
  }

  #withinFloodLimit(
    { record: { method, url, limit, limitKey }, response }: RequestContext,
    who: string
  ): boolean {
    if (limit !== undefined && limitKey === undefined) return true
    // The key of a limit is a look-up, whatever the method is.
    const max = method === 'GET' || limitKey !== undefined ? floodBudget.GET : floodBudget.other
    return this.#withinBudget(response, `${method} ${url} ${who}`, max)
  }

  /** Shown in headers only to who has used it up. */
  #withinBudget(response: ServerResponse, key: string, max: number, by = ''): boolean {
    const budget = this.limiter.take(key, max, minute)
    return budget.allowed || this.#tooMany(response, budget, by)
  }

  #take(response: ServerResponse, key: string, max: number, windowMs: number): boolean {
    const budget = this.limiter.take(key, max, windowMs)
    setRateHeaders(response, budget)
    return budget.allowed || this.#tooMany(response, budget)
  }

  #tooMany(response: ServerResponse, budget: Budget, by = ''): false {
    setRateHeaders(response, budget)
    const seconds = Math.max(1, Math.ceil((budget.resetAt - this.clock.now().getTime()) / 1000))
    response.setHeader('retry-after', seconds)
    sendText(response, 429, `rate limit exceeded: ${budget.limit} requests${by}; try again in ${seconds} s\n`)
    return false
  }

  #hasGoodParams(context: RequestContext): boolean {
    const fault = paramFault(context.record, context.params)
    return fault === null || refuse(context.response, badParam(fault))
  }
}

const addressOf = ({ ip }: RequestContext): string => `ip:${networkOf(ip)}`

interface ParamFault {
  readonly name: string
  readonly reason: string
}

const badParam = ({ name, reason }: ParamFault): Problem =>
  new Problem(400, 'E_PATH_INVALID', reason, { field: name })

/** The first parameter of the path that is wrong: ids are lowercase hyphenated UUIDs unless a schema says otherwise. */
function paramFault(
  record: Pick<RouteRecord, 'params' | 'schema'>,
  params: Readonly<Record<string, unknown>>
): ParamFault | null {
  for (const name of record.params) {
    const value = params[name]
    const schema = record.schema.params?.[name]
    // The words of an id are in its schema; it is checked as one without.
    if (schema === undefined || (name.endsWith('Id') && isUuidSchema(schema))) {
      if (name.endsWith('Id') && !(typeof value === 'string' && isUuid(value)))
        return { name, reason: `${name} must be a UUID in lowercase hyphenated form` }
    } else {
      const valid = validatorOf(schema, 'text')
      if (valid(value) !== true) return { name, reason: explainFault(valid.errors, name) }
    }
  }
  return null
}

function refuse(response: ServerResponse, refusal: Refusal | Problem): false {
  sendProblem(response, refusal)
  return false
}
