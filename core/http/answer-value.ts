import type { TSchema } from 'busbar/sdk'
import type { FastifyReply } from 'fastify'
import type { RouteRecord } from '../declarations/records.js'
import { isLong, writeInPieces } from './long-lists.js'
import { missingValue, takesNull } from './missing-value.js'

/** Sends a text that is the whole answer, its content type set already. */
type SendText = (text: string) => unknown

/** Sends what a handler answered, its status set already, as its schema declares it. Throws at nothing where something is declared. */
export function answerValue(
  value: unknown,
  reply: FastifyReply,
  record: RouteRecord,
  send: SendText
): unknown {
  const schema = record.schema.response?.[reply.statusCode] as TSchema | null | undefined
  if (schema === null || (value === undefined && schema === undefined)) return reply.send()
  if (schema !== undefined && (value === undefined || (value === null && !takesNull(schema))))
    throw missingValue(`the answer ${reply.statusCode}`, value)
  if (isLong(value)) {
    void reply.type(json)
    return textInPieces(value, reply).then(send)
  }
  // Fastify writes text, bytes and streams as they are, past the schema: right for a document with a type of its own, for nothing else.
  if (reply.hasHeader('content-type')) return typeof value === 'string' ? send(value) : value
  if (schema === undefined && !isData(value)) return value
  const text: unknown = reply.type(json).serialize(value)
  return typeof text === 'string' ? send(text) : reply.send(text)
}

const isData = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !('pipe' in value) &&
  !('getReader' in value) &&
  !ArrayBuffer.isView(value) &&
  !(value instanceof Response)

const json = 'application/json; charset=utf-8'

const textInPieces = (value: readonly unknown[], reply: FastifyReply): Promise<string> =>
  writeInPieces(
    value,
    piece => reply.serialize(piece) as string,
    () => !reply.raw.destroyed
  )
