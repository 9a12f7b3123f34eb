import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import type { TSchema } from 'busbar/sdk'
import { declaredCopier } from '../schemas/declared.js'
import { refuseMissing } from './missing-value.js'

type Write = (value: unknown) => string

const thorough = SerializerSelector()({}, undefined as never) as unknown as (part: object) => Write

/**
 * Turns a value into JSON that holds what the schema declares and nothing else. The text of fast-json-stringify is many small
 * ones until it is sent, and joining them takes longer than all the rest; it converts or refuses what has another type than declared, but for what is missing, which is refused here.
 */
export function answerWriter(part: { readonly schema: unknown }): Write & { compile(): void } {
  // Both are made on first use: most routes are never called.
  let copy: ReturnType<typeof declaredCopier> | null
  let write: Write | undefined
  const writer = (value: unknown): string => {
    if (copy === undefined) copy = declaredCopier(part.schema as TSchema) ?? null
    try {
      if (copy !== null) return JSON.stringify(copy(value))
    } catch {
      /* not as declared */
    }
    refuseMissing(part.schema as TSchema, value)
    write ??= thorough(part)
    return write(value)
  }
  /** Throws what is wrong with the schema. */
  const compile = (): void => {
    write ??= thorough(part)
  }
  return Object.assign(writer, { compile })
}
