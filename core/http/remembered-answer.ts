import { type ReplyOptions, reply } from 'busbar/sdk'
import { isReply } from '../../sdk/reply.js'

/** An answer as data, so that it can be given again. */
interface RememberedAnswer {
  readonly status: number
  readonly value: unknown
  /** Null where there are none. */
  readonly options: ReplyOptions | null
}

/** What a handler has answered, as data. Throws for a stream, which is read once. */
export function rememberable(result: unknown, successStatus: number): RememberedAnswer {
  if (!isReply(result)) return { status: successStatus, value: result ?? null, options: null }
  switch (result.kind) {
    case 'value': {
      const { headers, cookies } = result.options
      const isPlain = headers === undefined && cookies === undefined
      return {
        status: result.status,
        value: result.value ?? null,
        options: isPlain ? null : { ...(headers && { headers }), ...(cookies && { cookies }) }
      }
    }
    case 'redirect':
      return { status: 302, value: null, options: { headers: { location: result.url } } }
    default:
      throw new TypeError(
        'an idempotent operation has answered a stream, which cannot be given again to who sends its Idempotency-Key'
      )
  }
}

export const replyOf = ({ status, value, options }: RememberedAnswer) => reply(status, value, options ?? {})
