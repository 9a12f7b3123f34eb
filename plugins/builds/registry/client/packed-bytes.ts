import type { IncomingMessage } from 'node:http'
import { Backoff } from 'busbar/sdk'
import { connectionFailure } from './connection-failure.js'
import type { Descriptor } from './manifest.js'
import { RegistryFailure } from './registry-failure.js'
import type { RegistryReader } from './registry-reader.js'

const maxResumptions = 5

/** What the registry took for its end. */
class EndedEarly extends Error {}

/** The bytes of a blob, as many as it is said to have and none more. A connection that breaks off is resumed where it ended. */
export async function* packedBytes(
  reader: RegistryReader,
  { digest, size }: Pick<Descriptor, 'digest' | 'size'>,
  signal: AbortSignal
): AsyncGenerator<Buffer, void, undefined> {
  const watch = reader.watch(signal)
  const backoff = new Backoff(reader.parts.clock, { firstMs: 200, longestMs: 3200 })
  let at = 0
  let isOpened = false
  try {
    for (let resumptions = 0; at < size; resumptions++) {
      try {
        const answer = await reader.open({ path: `blobs/${digest}`, from: at, watch })
        isOpened = true
        try {
          for await (const chunk of withoutFirst(watch.count(answer), bytesToSkip(answer, at, size))) {
            at += chunk.length
            if (at > size)
              throw new RegistryFailure('broken', `a layer has more than the ${size} bytes of its manifest`)
            yield chunk
          }
        } finally {
          answer.destroy()
        }
        if (at < size) throw new EndedEarly(`a layer ends after ${at} of ${size} bytes`)
      } catch (caught) {
        const error = watch.reasonOf(caught)
        if (!isOpened || watch.signal.aborted || !isBreak(error)) throw error
        if (at === size) return
        if (resumptions === maxResumptions) throw lastWords(error, `${at} of ${size} bytes`)
        watch.rest()
        await backoff.pause(watch.signal)
      }
    }
  } finally {
    watch.end()
  }
}

/** How much of an answer is here already. Throws when it is another part, or cannot be the whole. */
function bytesToSkip(
  { statusCode, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>,
  at: number,
  size: number
): number {
  const length = Number(headers['content-length'] ?? NaN)
  if (statusCode !== 206) {
    if (!Number.isNaN(length) && length !== size)
      throw new RegistryFailure('broken', `a layer has ${length} bytes, and its manifest says ${size}`)
    return at
  }
  const from = /^bytes (\d{1,16})-/.exec(headers['content-range'] ?? '')?.[1]
  if (from === undefined || Number(from) !== at)
    throw new RegistryFailure('answer', 'it answers with another part of a layer than was asked for')
  return 0
}

async function* withoutFirst(
  chunks: AsyncIterable<Buffer>,
  bytes: number
): AsyncGenerator<Buffer, void, undefined> {
  let toSkip = bytes
  for await (const chunk of chunks) {
    const rest = toSkip === 0 ? chunk : chunk.subarray(toSkip)
    toSkip -= chunk.length - rest.length
    if (rest.length > 0) yield rest
  }
}

const isBreak = (error: unknown): boolean =>
  error instanceof EndedEarly || connectionFailure(error)?.kind === 'unreachable'

const lastWords = (error: unknown, got: string): RegistryFailure =>
  error instanceof EndedEarly
    ? new RegistryFailure('broken', error.message)
    : new RegistryFailure(
        'unreachable',
        `its connections broke off ${maxResumptions + 1} times, at last after ${got} of a layer (${connectionFailure(error)?.message})`
      )
