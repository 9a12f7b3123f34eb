import { createHash } from 'node:crypto'
import { type Clock, type Database, isProblem, problemTable, reply, type Secrets } from 'busbar/sdk'
import { isReply } from '../../sdk/reply.js'
import { idempotencyKinds, unwantedKey } from '../declarations/responses.js'
import type { RequestContext } from './request-context.js'

const problems = problemTable({ ...idempotencyKinds, unwanted: unwantedKey })
const header = 'idempotency-key'

interface Remembered {
  readonly fingerprint: string
  readonly status: number | null
  readonly answer: string | null
  readonly created_at: Date
}

/** Where an answer is remembered. */
interface Place {
  readonly caller: string
  readonly route: string
  readonly key: string
}

/** Answered in place of a handler that has not ended: see `RequestContext.expire`. */
const goesOn: ReadonlySet<string> = new Set(['E_TIMEOUT', 'E_PLUGIN_STOPPING'])

const day = 24 * 3600_000
const abandonedAfterMs = 5 * 60_000

/**
 * The same caller, path and key within 24 hours gets the first answer; another body is a conflict. Answers and bodies hold
 * passwords and tokens, and paths those of hooks: kept are a sealed answer, a keyed digest of the body and one of the path.
 */
export class Idempotency {
  readonly #find: (args: unknown[]) => Promise<Remembered[]>

  constructor(
    readonly database: Database,
    readonly clock: Clock,
    readonly secrets: Pick<Secrets, 'seal' | 'open' | 'sign' | 'verify'>
  ) {
    this.#find = database.statement<Remembered>(
      'idempotency_find',
      `
      select fingerprint, status, answer, created_at from ${database.schema}.idempotency_key where caller = $1 and route = $2 and key = $3`
    )
  }

  /** Whether this is for `run`; a key that would not be honoured is refused. */
  concerns({ headers, record: { idempotent, method, url } }: RequestContext): boolean {
    if (headers[header] === undefined) return false
    if (!idempotent) throw problems.unwanted({ method, url })
    return true
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
    const key = context.headers[header]
    if (typeof key !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key)) throw problems.malformed()
    context.idempotencyKey = key
    const place = {
      caller: callerKey(context),
      route: `${context.record.method} ${digestOf((context.raw.url ?? '').split('?')[0] ?? '')}`,
      key
    }
    const first = await this.#first(place, JSON.stringify(context.body ?? null))
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
      .update({
        status: value.status,
        answer: this.secrets.seal(JSON.stringify(value.value ?? null), sealedAt(place))
      })
    return await send(result)
  }

  /** The answer to repeat, or null when this request is the first and has taken the key. */
  async #first(place: Place, body: string): Promise<unknown> {
    const { secrets } = this
    const now = this.clock.now()
    const taken = await this.database.sql(
      `
      insert into $schema.idempotency_key (caller, route, key, fingerprint, created_at) values (:caller, :route, :key, :fingerprint, :now)
      on conflict (caller, route, key) do update set fingerprint = excluded.fingerprint, status = null, answer = null, created_at = excluded.created_at
      where idempotency_key.created_at < :expired or (idempotency_key.status is null and idempotency_key.created_at < :abandoned)
      returning key`,
      {
        ...place,
        fingerprint: secrets.sign(body),
        now,
        expired: new Date(now.getTime() - day),
        abandoned: new Date(now.getTime() - abandonedAfterMs)
      }
    )
    if (taken.length > 0) return null
    const [earlier] = await this.#find([place.caller, place.route, place.key])
    if (earlier !== undefined && !secrets.verify(body, earlier.fingerprint)) throw problems.otherBody()
    if (earlier?.status == null || earlier.answer === null) throw problems.underWay()
    return reply(earlier.status, JSON.parse(secrets.open(earlier.answer, sealedAt(place))))
  }
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

const sealedAt = ({ caller, route, key }: Place) => ({
  table: 'idempotency_key',
  column: 'answer',
  row: `${caller} ${route} ${key}`
})

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
