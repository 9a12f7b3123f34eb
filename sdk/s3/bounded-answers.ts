import { Transform } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'

/** A list of a thousand objects with the longest keys is half of it. */
const longestAnswer = 4 * 1024 * 1024
/** From its head to its end. */
const answerMs = 60_000

/** What an answer is cut off for; `s3Failure` has the words. */
export type AnswerFault = 'ANSWER_TOO_LONG' | 'ANSWER_TOO_SLOW'

interface HttpAnswer {
  readonly statusCode?: number
  body?: unknown
}

/**
 * What a store answers is kept in memory and parsed, but for an object that is read piece by piece. A store may be anybody's: an
 * answer that is longer than any that is meant, or does not come to its end, is cut off.
 */
export function boundAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async args => {
        const result = await next(args)
        const answer = result.response as HttpAnswer
        const isObject = commandName === 'GetObjectCommand' && (answer.statusCode ?? 500) < 300
        if (!isObject) answer.body = bounded(answer.body)
        return result
      },
    // Behind what parses it.
    { step: 'deserialize', priority: 'low', name: 'boundedAnswers' }
  )
}

function bounded(body: unknown): unknown {
  if (!isReadable(body)) return body
  let bytes = 0
  const limited = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes <= longestAnswer) done(null, chunk)
      else done(fault('ANSWER_TOO_LONG'))
    }
  })
  const timer = setTimeout(() => limited.destroy(fault('ANSWER_TOO_SLOW')), answerMs)
  body.on('error', error => limited.destroy(error))
  limited.once('close', () => {
    clearTimeout(timer)
    body.destroy()
  })
  return body.pipe(limited)
}

const fault = (code: AnswerFault): Error => Object.assign(new Error(code), { code })

const isReadable = (body: unknown): body is NodeJS.ReadableStream & { destroy(): void } =>
  typeof (body as { readonly pipe?: unknown } | null | undefined)?.pipe === 'function'
