import { type Chunk, cleaned, type KeptLine } from '../kept/chunk.js'
import { ChunkBuilder } from '../kept/chunk-builder.js'

/** All of these lines, as they are kept. */
export function chunksOf(lines: readonly KeptLine[], clean: (text: string) => string): Chunk[] {
  const builder = new ChunkBuilder()
  for (const { message, kind, ...time } of lines) builder.add(time, kind, message, Buffer.byteLength(message))
  return builder.take().map(chunk => cleaned(chunk, clean))
}
