import { retryAfterOf } from './api-error.js'

/** How often the same request is sent again at most. */
const mostRetries = 5
/** So that those who were refused together do not come again together. */
const spreadMs = 250

interface Tried {
  readonly method: string
  readonly hasIdempotencyKey: boolean
  /** How often it has been sent again. */
  readonly retries: number
  /** How long has been waited for it. */
  readonly waitedMs: number
}

/**
 * How long to wait before the same request may be sent again; undefined when it is not to be. What was refused with 429 was
 * not carried out, so anything may be repeated; 503 tells nothing of that. 409 with a key is repeated while the first request
 * with it is still being answered. The platform says when, or it is not repeated.
 */
export function retryDelayMs(
  response: Response,
  { method, hasIdempotencyKey, retries, waitedMs }: Tried,
  maxWaitMs: number
): number | undefined {
  const { status } = response
  const isRepeatable =
    status === 429 ||
    (status === 503 && ['GET', 'PUT', 'DELETE'].includes(method)) ||
    ((status === 503 || status === 409) && hasIdempotencyKey)
  if (!isRepeatable) return undefined
  const seconds = retryAfterOf(response)
  if (seconds === undefined || retries >= mostRetries) return undefined
  const delayMs = seconds * 1000 + Math.random() * spreadMs
  return waitedMs + delayMs > maxWaitMs ? undefined : delayMs
}

/** Rejects with the reason of the signal when that ends it. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
