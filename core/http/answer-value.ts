import type { TSchema } from 'busbar/sdk'
import type { FastifyReply } from 'fastify'
import type { RouteRecord } from '../declarations/records.js'
import { isLong, writeInPieces } from './long-lists.js'
import { missingValue, takesNull } from './missing-value.js'

/** Hands on what a handler answered, its status set already, as its schema declares it. Throws at nothing where something is declared. */
export function answerValue(value: unknown, reply: FastifyReply, record: RouteRecord): unknown {
  const schema = record.schema.response?.[reply.statusCode] as TSchema | null | undefined
  if (schema === null || (value === undefined && schema === undefined)) return reply.send()
  if (schema === undefined) return isLong(value) ? inPieces(value, reply) : value
  if (value === undefined || (value === null && !takesNull(schema)))
    throw missingValue(`the answer ${reply.statusCode}`, value)
  if (isLong(value)) return inPieces(value, reply)
  // Fastify writes text, bytes and streams as they are, past the schema: right for a document with a type of its own, for nothing else.
  return isData(value) || reply.hasHeader('content-type')
    ? value
    : reply.type(json).send(reply.serialize(value))
}

const isData = (value: unknown): boolean =>
  value === null ||
  (typeof value === 'object' &&
    !('pipe' in value) &&
    !('getReader' in value) &&
    !ArrayBuffer.isView(value) &&
    !(value instanceof Response))

const json = 'application/json; charset=utf-8'

function inPieces(value: readonly unknown[], reply: FastifyReply): unknown {
  void reply.type(json)
  return writeInPieces(
    value,
    piece => reply.serialize(piece) as string,
    () => !reply.raw.destroyed
  )
}
