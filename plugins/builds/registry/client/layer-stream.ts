import { createHash } from 'node:crypto'
import { Turns } from 'busbar/sdk'
import { headBytes, LayerUnpacker } from './layer-unpacker.js'
import { RegistryFailure } from './registry-failure.js'
import type { UnpackBudget } from './unpack-budget.js'

/**
 * Hands on packed bytes as they come, unpacks them on the side, and ends well only when both are what they should be.
 * The last piece is kept back until that is certain, so that no failed layer looks whole by its number of bytes.
 */
export async function* provenLayer(
  packed: AsyncIterable<Buffer>,
  wanted: { readonly digest: string; readonly diffId: string },
  budget: UnpackBudget
): AsyncGenerator<Buffer, void, undefined> {
  const hash = createHash('sha256')
  const turns = new Turns()
  let unpacker: LayerUnpacker | undefined
  let last: Buffer | undefined
  try {
    for await (const piece of withWholeHead(packed)) {
      if (turns.isOver) await turns.pass()
      if (!budget.takePacked(piece.length)) throw budget.exceeded('its layers are')
      unpacker ??= new LayerUnpacker(piece, budget)
      hash.update(piece)
      await unpacker.write(piece)
      if (last !== undefined) yield last
      last = piece
    }
    const digest = `sha256:${hash.digest('hex')}`
    if (digest !== wanted.digest)
      throw new RegistryFailure('broken', `verification failed: the layer ${wanted.digest} came as ${digest}`)
    const diffId = (await unpacker?.digest()) ?? digest
    if (diffId !== wanted.diffId)
      throw new RegistryFailure(
        'broken',
        `verification failed: the layer ${wanted.digest} unpacks to ${diffId}, and its configuration says ${wanted.diffId}`
      )
    if (last !== undefined) yield last
  } finally {
    unpacker?.destroy()
  }
}

/** The first piece tells how it is packed, however small the pieces come. */
async function* withWholeHead(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const piece of pieces) {
    if (head === undefined) {
      yield piece
      continue
    }
    head = Buffer.concat([head, piece])
    if (head.length < headBytes) continue
    yield head
    head = undefined
  }
  if (head !== undefined && head.length > 0) yield head
}
