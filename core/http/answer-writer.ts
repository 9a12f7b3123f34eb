import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import type { TSchema } from 'busbar/sdk'
import { declaredCopier } from '../../sdk/declared.js'

type Write = (value: unknown) => string

const thorough = SerializerSelector()({}, undefined as never) as unknown as (part: object) => Write

/**
 * Turns a value into JSON that holds what the schema declares and nothing else. The text of fast-json-stringify is many small
 * ones until it is sent, and joining them takes longer than all the rest; it converts or refuses what has another type than declared.
 */
export function answerWriter (part: { readonly schema: unknown }): Write {
  // Both are made on first use: most routes are never called.
  let copy: ReturnType<typeof declaredCopier> | null
  let write: Write | undefined
  return value => {
    if (copy === undefined) copy = declaredCopier(part.schema as TSchema) ?? null
    try {
      if (copy !== null) return JSON.stringify(copy(value))
    } catch { /* not as declared */ }
    return (write ??= thorough(part))(value)
  }
}
