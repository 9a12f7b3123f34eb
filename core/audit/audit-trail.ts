import { randomUUID } from 'node:crypto'
import { type Audit, type AuditLog, type Clock, type Database, type Log } from 'busbar/sdk'
import { toProblem } from '../http/problems.js'
import type { RequestContext } from '../http/request-context.js'

export type Outcome = { readonly result: unknown } | { readonly error: unknown }

/**
 * Who did what to which resource, with the outcome, written before the answer is sent. It comes from the
 * route's declaration, so no mutating operation can forget it. Rows outlive what they name.
 */
export class AuditTrail implements AuditLog {
  readonly table: string

  constructor (readonly database: Database, readonly clock: Clock, readonly log: Log) {
    this.table = `${database.schema}.audit_log`
  }

  async forget (before: Date, atMost: number): Promise<number> {
    const gone = await this.database.sql(`
      delete from ${this.table} where id in (select id from ${this.table} where created_at < ? order by created_at, id limit ?)
      returning id`, [before, atMost])
    return gone.length
  }

  async write (context: RequestContext, audit: Audit, outcome: Outcome): Promise<void> {
    const { caller } = context
    const row = {
      id: randomUUID(),
      action: 'error' in outcome ? audit.failure ?? audit.action : audit.action,
      resource_type: audit.resource,
      resource_id: resourceId(context, audit, outcome),
      user_id: caller.kind === 'anonymous' ? null : caller.user.id,
      user_email: caller.kind === 'anonymous' ? claimed(context, audit) : caller.user.email,
      user_username: caller.kind === 'anonymous' ? null : caller.user.username,
      token_id: caller.kind === 'token' ? caller.tokenId : null,
      token_name: caller.kind === 'token' ? caller.tokenName : '',
      project_id: context.project ?? null,
      details: JSON.stringify(details(outcome)),
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

function claimed ({ body }: RequestContext, { claims }: Audit): string | null {
  const value = claims === undefined ? undefined : fieldOf(body, claims)
  return typeof value === 'string' ? value : null
}

function resourceId (context: RequestContext, { id, resource }: Audit, outcome: Outcome): string | null {
  const { caller } = context
  if (id === undefined) return resource === 'user' && caller.kind !== 'anonymous' ? caller.user.id : null
  if ('param' in id) return String(context.params[id.param] ?? '')
  const value: unknown = 'result' in outcome ? id.result.split('.').reduce<unknown>(fieldOf, outcome.result) : undefined
  return typeof value === 'string' ? value : null
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

function details (outcome: Outcome): Record<string, unknown> {
  if ('result' in outcome) return { outcome: 'success' }
  const { status, code, message } = toProblem(outcome.error)
  return { outcome: 'failure', status, code, error: message }
}
