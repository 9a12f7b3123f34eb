/** A message in transit: its `data` as a value. */
type RelayedMessage = readonly [channel: string, event: string, data: unknown]

/** Piece `index` of `count` of a frame that is too long: base64 of its JSON. */
export interface Piece {
  /** The number of the frame among those of its sender. */
  readonly of: number
  readonly index: number
  readonly count: number
  readonly text: string
  /** Not of messages: it is not to be lost. */
  readonly isOfControl?: boolean
}

/** A message between processes. `from` is the sender's process. */
export type RelayFrame = {
  readonly from: string
} /** `hello`: I have come, or may have missed something: say what you want. */ & (
  | { readonly kind: 'hello' | 'alive' | 'bye' }
  /** Messages of mine may be lost. */
  | { readonly kind: 'gap' }
  /** `wants`: the full set of channels that the sender wants; `more` and `less` change it. */
  | { readonly kind: 'wants' | 'more' | 'less'; readonly channels: readonly string[] }
  /** How many sockets users have with the sender: of all who have any (`isWhole`), or of those where it has changed. */
  | { readonly kind: 'sockets'; readonly counts: Readonly<Record<string, number>>; readonly isWhole: boolean }
  /** `number`: that of the frame. */
  | { readonly kind: 'messages'; readonly number: number; readonly messages: readonly RelayedMessage[] }
  | ({ readonly kind: 'piece' } & Piece)
)

/** A NOTIFY carries less than 8000 bytes; the listener puts a short head before ours. */
export const frameBytes = 7500
const pieceBytes = 5400

/**
 * A frame of messages that are JSON already. No two are equal, whatever the messages: of equal payloads PostgreSQL
 * delivers one for each transaction.
 */
export const messagesFrame = (from: string, number: number, messages: readonly string[]): string =>
  `{"kind":"messages","from":${JSON.stringify(from)},"number":${number},"messages":[${messages.join(',')}]}`

/** The frame as it is, or in pieces when it is too long. */
export function partsOf(from: string, frame: string, of: number, isOfControl = false): string[] {
  const bytes = Buffer.from(frame)
  if (bytes.length <= frameBytes) return [frame]
  const count = Math.ceil(bytes.length / pieceBytes)
  return Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      kind: 'piece',
      from,
      of,
      index,
      count,
      ...(isOfControl && { isOfControl }),
      text: bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes).toString('base64')
    } satisfies RelayFrame)
  )
}
