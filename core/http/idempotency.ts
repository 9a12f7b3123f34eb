import { createHash } from 'node:crypto'
import { type Clock, type Database, isProblem, problemTable, reply } from 'busbar/sdk'
import { isReply } from '../../sdk/reply.js'
import { idempotencyKinds } from '../declarations/responses.js'
import type { RequestContext } from './request-context.js'

const problems = problemTable(idempotencyKinds)

interface Remembered {
  readonly fingerprint: string
  readonly status: number | null
  readonly answer: unknown
  readonly created_at: Date
}

/** Answered in place of a handler that has not ended: see `RequestContext.expire`. */
const goesOn: ReadonlySet<string> = new Set(['E_TIMEOUT', 'E_PLUGIN_STOPPING'])

const day = 24 * 3600_000
const abandonedAfterMs = 5 * 60_000

/** The same caller, path and key within 24 hours gets the first answer; another body is a conflict. */
export class Idempotency {
  readonly #find: (args: unknown[]) => Promise<Remembered[]>

  constructor(
    readonly database: Database,
    readonly clock: Clock
  ) {
    this.#find = database.statement<Remembered>(
      'idempotency_find',
      `
      select fingerprint, status, answer, created_at from ${database.schema}.idempotency_key where caller = $1 and route = $2 and key = $3`
    )
  }

  /** Deletes the answers whose time to live is over. */
  async sweep(): Promise<void> {
    await this.database
      .table('idempotency_key')
      .where('created_at', '<', new Date(this.clock.now().getTime() - day))
      .delete()
  }

  async run(
    context: RequestContext,
    work: () => Promise<unknown>,
    send: (result: unknown) => Promise<unknown>
  ): Promise<unknown> {
    const key = context.headers['idempotency-key']
    if (typeof key !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key)) throw problems.malformed()
    context.idempotencyKey = key
    const place = {
      caller: callerKey(context),
      route: `${context.record.method} ${(context.raw.url ?? '').split('?')[0] ?? ''}`,
      key
    }
    const fingerprint = createHash('sha256')
      .update(JSON.stringify(context.body ?? null))
      .digest('hex')
    const first = await this.#first(place, fingerprint)
    if (first !== null) {
      context.response.setHeader('idempotent-replayed', 'true')
      return await send(first)
    }
    let result: unknown
    try {
      result = await work()
    } catch (error) {
      // Nothing was promised: the same key may be tried again, unless the work goes on behind the answer.
      if (!isProblem(error) || !goesOn.has(error.code))
        await this.database.table('idempotency_key').where(place).delete()
      throw error
    }
    const value =
      isReply(result) && result.kind === 'value'
        ? result
        : { status: context.record.successStatus, value: result }
    await this.database
      .table('idempotency_key')
      .where(place)
      .update({ status: value.status, answer: JSON.stringify(value.value ?? null) })
    return await send(result)
  }

  /** The answer to repeat, or null when this request is the first and has taken the key. */
  async #first(place: { caller: string; route: string; key: string }, fingerprint: string): Promise<unknown> {
    const now = this.clock.now()
    const taken = await this.database.sql(
      `
      insert into $schema.idempotency_key (caller, route, key, fingerprint, created_at) values (:caller, :route, :key, :fingerprint, :now)
      on conflict (caller, route, key) do update set fingerprint = excluded.fingerprint, status = null, answer = null, created_at = excluded.created_at
      where idempotency_key.created_at < :expired or (idempotency_key.status is null and idempotency_key.created_at < :abandoned)
      returning key`,
      {
        ...place,
        fingerprint,
        now,
        expired: new Date(now.getTime() - day),
        abandoned: new Date(now.getTime() - abandonedAfterMs)
      }
    )
    if (taken.length > 0) return null
    const [earlier] = await this.#find([place.caller, place.route, place.key])
    if (earlier !== undefined && earlier.fingerprint !== fingerprint) throw problems.otherBody()
    if (earlier === undefined || earlier.status === null) throw problems.underWay()
    return reply(earlier.status, earlier.answer)
  }
}

function callerKey({ caller, ip }: RequestContext): string {
  switch (caller.kind) {
    case 'anonymous':
      return `ip:${ip}`
    case 'session':
      return `user:${caller.user.id}`
    case 'token':
      return `token:${caller.tokenId}`
  }
}
