/**
 * Cuts a stream into parts of the same length, but for the last. A part is valid until the next but one is asked for: two pieces
 * of memory take turns, so that one is sent while the other is filled, and nothing is left for the garbage collector.
 */
export async function* partsOf(content: AsyncIterable<Buffer>, partBytes: number): AsyncGenerator<Buffer> {
  const memory: Array<Buffer | undefined> = [undefined, undefined]
  let turn = 0
  let filled = 0
  const own = (): Buffer => {
    memory[turn] ??= Buffer.allocUnsafeSlow(partBytes)
    return memory[turn] as Buffer
  }
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.copy(own(), filled, at)
      at += taken
      filled += taken
      if (filled < partBytes) continue
      yield own()
      turn = 1 - turn
      filled = 0
    }
  }
  if (filled > 0) yield own().subarray(0, filled)
}
