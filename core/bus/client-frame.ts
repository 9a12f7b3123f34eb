/** A larger frame closes the connection with 1009. */
export const longestClientFrame = 4096

/**
 * What a frame of a client asks for. `malformed`: not JSON; `ignored`: JSON that asks for nothing we
 * know. Binary frames are read as text, as not every client library lets its user choose.
 */
type ClientFrame =
  | { readonly kind: 'subscribe' | 'unsubscribe'; readonly channel: string }
  | { readonly kind: 'malformed' | 'ignored' }

export function readClientFrame(text: string): ClientFrame {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'malformed' }
  }
  if (typeof value !== 'object' || value === null || !('action' in value) || !('channel' in value))
    return { kind: 'ignored' }
  const { action, channel } = value
  if (typeof channel !== 'string' || channel === '') return { kind: 'ignored' }
  return action === 'subscribe' || action === 'unsubscribe' ? { kind: action, channel } : { kind: 'ignored' }
}

/** A frame of ours; `data` is JSON already, and passes through as its producer wrote it. */
export const serverFrameText = (channel: string, event: string, data: string) =>
  `{"channel":${JSON.stringify(channel)},"event":${JSON.stringify(event)},"data":${data}}`
