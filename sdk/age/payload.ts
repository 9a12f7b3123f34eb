import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { damaged } from './age-error.js'

/*
 * What comes behind the header of an age file: pieces of 64 KiB, each sealed by ChaCha20-Poly1305 under its number, the last one
 * marked. By Node's own cipher, as that of the library is JavaScript, which takes longer than everything else of a backup.
 */

const pieceBytes = 64 * 1024
const tagBytes = 16
const sealedBytes = pieceBytes + tagBytes
const cipher = 'chacha20-poly1305'
const tag = { authTagLength: tagBytes }

export const saltBytes = 16

export const payloadKey = (fileKey: Uint8Array, salt: Uint8Array): Buffer =>
  Buffer.from(hkdfSync('sha256', fileKey, salt, 'payload', 32))

/** The number of a piece, and whether it is the last one: so none can be left out, moved, or added. */
function nonceOf(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(index, 5, 6)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

function seal(key: Buffer, nonce: Buffer, piece: Buffer): Buffer {
  const sealing = createCipheriv(cipher, key, nonce, tag)
  const sealed = sealing.update(piece)
  sealing.final()
  return Buffer.concat([sealed, sealing.getAuthTag()])
}

function open(key: Buffer, nonce: Buffer, sealed: Buffer): Buffer {
  const opening = createDecipheriv(cipher, key, nonce, tag)
  opening.setAuthTag(sealed.subarray(-tagBytes))
  const opened = opening.update(sealed.subarray(0, -tagBytes))
  try {
    opening.final()
  } catch (error) {
    throw damaged('a part of it was changed', error)
  }
  return opened
}

export async function* sealPieces(key: Buffer, source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let index = 0
  let last: Buffer = Buffer.alloc(0)
  for await (const { bytes, isLast } of pieces(source, pieceBytes)) {
    if (isLast) last = bytes
    else yield seal(key, nonceOf(index++, false), bytes)
  }
  yield seal(key, nonceOf(index, true), last)
}

export async function* openPieces(key: Buffer, source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let index = 0
  for await (const { bytes, isLast } of pieces(source, sealedBytes)) {
    if (bytes.length < tagBytes) throw damaged('its end is missing')
    const opened = open(key, nonceOf(index, isLast), bytes)
    if (isLast && index > 0 && opened.length === 0) throw damaged('its last part is empty')
    index++
    yield opened
  }
  if (index === 0) throw damaged('nothing comes behind its head')
}

/** Pieces of that length; the last one is never empty, unless there is none. The memory of one is used for the next. */
async function* pieces(
  source: AsyncIterable<Uint8Array>,
  length: number
): AsyncGenerator<{ readonly bytes: Buffer; readonly isLast: boolean }> {
  const held = Buffer.allocUnsafeSlow(length)
  let filled = 0
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; ) {
      // Only now is it known that it was not the last one.
      if (filled === length) {
        yield { bytes: held, isLast: false }
        filled = 0
      }
      const taken = Math.min(length - filled, chunk.length - at)
      held.set(chunk.subarray(at, at + taken), filled)
      at += taken
      filled += taken
    }
  }
  if (filled > 0) yield { bytes: held.subarray(0, filled), isLast: true }
}
