import { createHash } from 'node:crypto'
import { type Clock, type Database, isProblem, Problem, type ReplyOptions, type Secrets } from 'busbar/sdk'
import { idempotencyProblems as problems, unwantedKey } from '../declarations/responses.js'
import { discardResult } from './discard-result.js'
import { rememberable, replyOf } from './remembered-answer.js'
import type { RequestContext } from './request-context.js'

const header = 'idempotency-key'

interface Remembered {
  readonly fingerprint: string
  readonly status: number | null
  readonly answer: string | null
  /** Its headers and cookies; null of an answer that has none. */
  readonly answer_options: string | null
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
/** After that, whoever carries it out is taken to be gone, and what became of it is not known. */
const lostAfterMs = 5 * 60_000
const askAgainSeconds = 2

/**
 * The same caller, path and key within 24 hours gets the first answer; another body is a conflict. Work runs again with its
 * key only when it is known to have failed: what a platform that was killed had begun may have taken effect. Answers and
 * bodies hold passwords and tokens, and paths those of hooks: kept are a sealed answer, a keyed digest of the body and one of
 * the path.
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
      select fingerprint, status, answer, answer_options, created_at from ${database.schema}.idempotency_key where caller = $1 and route = $2 and key = $3`
    )
  }

  /** Whether this is for `run`; a key that would not be honoured is refused. */
  concerns({ headers, record: { idempotent, method, url } }: RequestContext): boolean {
    if (headers[header] === undefined) return false
    if (!idempotent) throw unwantedKey({ method, url })
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
    const key = keyOf(context)
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
    // A handler whose time is up goes on behind the answer; how it ends is kept as well.
    context.whenLate = async ({ result: late, failed }) => {
      if (failed) await this.#release(place)
      else await this.#keep(place, context, late)
    }
    try {
      result = await work()
    } catch (error) {
      // Nothing was promised: the same key may be tried again, unless the work goes on behind the answer.
      if (!isProblem(error) || !goesOn.has(error.code)) await this.#release(place)
      throw error
    }
    try {
      await this.#keep(place, context, result)
    } catch (error) {
      discardResult(result)
      throw error
    }
    return await send(result)
  }

  async #keep(place: Place, { record }: RequestContext, result: unknown): Promise<void> {
    const { status, value, options } = rememberable(result, record.successStatus)
    await this.database
      .table('idempotency_key')
      .where(place)
      .update({
        status,
        answer: this.secrets.seal(JSON.stringify(value), sealedAt(place, 'answer')),
        answer_options:
          options === null
            ? null
            : this.secrets.seal(JSON.stringify(options), sealedAt(place, 'answer_options'))
      })
  }

  async #release(place: Place): Promise<void> {
    await this.database.table('idempotency_key').where(place).delete()
  }

  /** The answer to repeat, or null when this request is the first and has taken the key. */
  async #first(place: Place, body: string): Promise<unknown> {
    const { secrets } = this
    const now = this.clock.now()
    const taken = await this.database.sql(
      `
      insert into $schema.idempotency_key (caller, route, key, fingerprint, created_at) values (:caller, :route, :key, :fingerprint, :now)
      on conflict (caller, route, key) do update set fingerprint = excluded.fingerprint, status = null, answer = null, answer_options = null, created_at = excluded.created_at
      where idempotency_key.created_at < :expired
      returning key`,
      {
        ...place,
        fingerprint: secrets.sign(body),
        now,
        expired: new Date(now.getTime() - day)
      }
    )
    if (taken.length > 0) return null
    const [earlier] = await this.#find([place.caller, place.route, place.key])
    if (earlier !== undefined && !secrets.verify(body, earlier.fingerprint)) throw problems.otherBody()
    if (earlier?.status == null || earlier.answer === null) throw unanswered(earlier, now)
    const opened = (column: 'answer' | 'answer_options'): unknown =>
      JSON.parse(secrets.open(earlier[column] ?? '', sealedAt(place, column)))
    return replyOf({
      status: earlier.status,
      value: opened('answer'),
      options: earlier.answer_options === null ? null : (opened('answer_options') as ReplyOptions)
    })
  }
}

/** Of a request whose answer is not there. */
function unanswered(earlier: Remembered | undefined, now: Date): Problem {
  if (earlier !== undefined && now.getTime() - earlier.created_at.getTime() > lostAfterMs)
    return problems.lost()
  const { status, code, message, details } = problems.underWay()
  return new Problem(status, code, message, details, { 'retry-after': String(askAgainSeconds) })
}

function keyOf({ raw, headers }: RequestContext): string {
  const key = headers[header]
  // Node.js joins those that are sent twice.
  const isOne = raw.headersDistinct[header]?.length === 1
  if (!isOne || typeof key !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key))
    throw problems.malformed()
  return key
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

const sealedAt = ({ caller, route, key }: Place, column: 'answer' | 'answer_options') => ({
  table: 'idempotency_key',
  column,
  row: `${caller} ${route} ${key}`
})

function callerKey({ caller, ip, record }: RequestContext): string {
  switch (caller.kind) {
    case 'anonymous':
      // The token in a path, of which the digest is kept, is the credential: who has it may come from anywhere.
      return record.params.includes('token') ? 'path' : `ip:${ip}`
    case 'session':
      return `user:${caller.user.id}`
    case 'token':
      return `token:${caller.tokenId}`
  }
}
