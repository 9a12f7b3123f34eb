import { randomUUID } from 'node:crypto'
import type { Audit, AuditEntry, AuditLog, Clock, Database, Log, Tx } from 'busbar/sdk'
import { concernedUser } from '../../sdk/errors.js'
import { toProblem } from '../http/problems.js'
import type { RequestContext } from '../http/request-context.js'
import { AnonymousAuditLimit } from './anonymous-audit-limit.js'

type Outcome = { readonly result: unknown } | { readonly error: unknown }

/**
 * Who did what to which resource, with the outcome, written before the answer is sent. It comes from the
 * route's declaration, so no mutating operation can forget it. Rows outlive what they name.
 */
export class AuditTrail implements AuditLog {
  readonly table: string

  /** What callers without a credential may add to the table. */
  readonly anonymousLimit: AnonymousAuditLimit

  constructor(
    readonly database: Database,
    readonly clock: Clock,
    readonly log: Log
  ) {
    this.anonymousLimit = new AnonymousAuditLimit(clock)
    this.table = `${database.schema}.audit_log`
  }

  async forget(before: Date, atMost: number): Promise<number> {
    const gone = await this.database.sql(
      `
      delete from ${this.table} where id in (select id from ${this.table} where created_at < ? order by created_at, id limit ?)
      returning id`,
      [before, atMost]
    )
    return gone.length
  }

  async record({ action, resource, resourceId, projectId, user, details, ip }: AuditEntry, tx?: Tx) {
    await this.database.table('audit_log', tx).insert({
      id: randomUUID(),
      action,
      resource_type: resource,
      resource_id: resourceId,
      user_id: user?.id ?? null,
      user_email: user?.email ?? null,
      user_username: user?.username ?? null,
      token_id: null,
      token_name: '',
      project_id: projectId,
      details: JSON.stringify(details),
      ip_address: ip,
      created_at: this.clock.now()
    })
  }

  async write(context: RequestContext, audit: Audit, outcome: Outcome): Promise<void> {
    if (
      audit.unless !== undefined &&
      'result' in outcome &&
      fieldOf(outcome.result, audit.unless) !== undefined
    )
      return
    const { caller } = context
    const resource_id = resourceId(context, audit, outcome)
    // A caller who had no credential and has signed in with this request acted on their own account.
    const concerned = 'error' in outcome ? concernedUser(outcome.error) : undefined
    const own = concerned?.id ?? (audit.resource === 'user' ? resource_id : null)
    const isUnproven = caller.kind === 'anonymous' && concerned === undefined && resource_id === null
    const admission = isUnproven ? this.anonymousLimit.admit(context.ip) : { isRecorded: true, unrecorded: 0 }
    if (!admission.isRecorded) return
    const row = {
      id: randomUUID(),
      action: actionOf(audit, outcome),
      resource_type: audit.resource,
      resource_id,
      user_id: caller.kind === 'anonymous' ? own : caller.user.id,
      user_email:
        caller.kind === 'anonymous'
          ? (concerned?.email ?? claimed(context, audit, outcome))
          : caller.user.email,
      user_username: caller.kind === 'anonymous' ? (concerned?.username ?? null) : caller.user.username,
      token_id: caller.kind === 'token' ? caller.tokenId : null,
      token_name: caller.kind === 'token' ? caller.tokenName : '',
      project_id: context.project ?? null,
      details: JSON.stringify({
        ...details(outcome, audit),
        ...(admission.unrecorded > 0 ? { unrecorded: admission.unrecorded } : {})
      }),
      ip_address: context.ip,
      created_at: this.clock.now()
    }
    try {
      await this.database.table('audit_log').insert(row)
    } catch (error) {
      // The change is made: refusing the answer would lie about it. The log keeps what the table could not.
      this.log.error({ err: error, audit: row }, 'an audit record could not be written')
    }
  }
}

function actionOf({ action, otherwise, failure }: Audit, outcome: Outcome): string {
  if ('error' in outcome) return failure ?? action
  return otherwise !== undefined && fieldOf(outcome.result, otherwise.when) === true
    ? otherwise.action
    : action
}

/** An e-mail address is recorded, known or not; any other text that an anonymous caller chose is not. */
const looksLikeAddress = /^[^\s@]{1,128}@[^\s@]{1,253}$/

function claimed({ body }: RequestContext, { claims }: Audit, outcome: Outcome): string | null {
  const value = claims === undefined ? undefined : (fieldOf(body, claims) ?? answered(outcome, claims))
  return typeof value === 'string' && looksLikeAddress.test(value) ? value : null
}

function resourceId(context: RequestContext, { id, resource }: Audit, outcome: Outcome): string | null {
  const { caller } = context
  if (id === undefined) return resource === 'user' && caller.kind !== 'anonymous' ? caller.user.id : null
  if ('param' in id) return String(context.params[id.param] ?? '')
  const value = answered(outcome, id.result)
  return typeof value === 'string' ? value : null
}

const answered = (outcome: Outcome, path: string): unknown =>
  'result' in outcome ? path.split('.').reduce<unknown>(fieldOf, outcome.result) : undefined

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

function details(outcome: Outcome, { keeps = [] }: Audit): Record<string, unknown> {
  if ('result' in outcome)
    return {
      outcome: 'success',
      ...Object.fromEntries(keeps.map(field => [field, fieldOf(outcome.result, field)]))
    }
  const { status, code, message } = toProblem(outcome.error)
  return { outcome: 'failure', status, code, error: message }
}
