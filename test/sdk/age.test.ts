import { randomBytes } from 'node:crypto'
import { Decrypter, Encrypter } from 'age-encryption'
import { test } from 'tap'
import {
  AgeError,
  decryptBytes,
  decrypting,
  encryptBytes,
  encrypting,
  isRecipient,
  makeKeyPair
} from '../../sdk/age/index.js'

const { identity, recipient } = await makeKeyPair()
const piece = 64 * 1024
/** Around the borders of pieces, where a mistake would be. */
const lengths = [0, 1, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 17]

async function* inChunks(bytes: Uint8Array, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield Buffer.from(bytes.subarray(at, at + length))
}

async function whole(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(Uint8Array.from(chunk))
  return Buffer.concat(chunks)
}

test('what is encrypted here the library opens, and what it encrypts is opened here', async t => {
  for (const length of lengths) {
    const bytes = randomBytes(length)
    const decrypter = new Decrypter()
    decrypter.addIdentity(identity)
    t.same(Buffer.from(await decrypter.decrypt(await encryptBytes([recipient], bytes))), bytes, `${length}`)
    const encrypter = new Encrypter()
    encrypter.addRecipient(recipient)
    t.same(await decryptBytes(identity, await encrypter.encrypt(bytes)), bytes, `${length} by the library`)
  }
})

test('the same comes out however the bytes are cut', async t => {
  const bytes = randomBytes(2 * piece + 5)
  for (const length of [1, 100, 1000, piece, 100_000]) {
    if (length === 1 && bytes.length > 200_000) continue
    const sealed = await whole(encrypting([recipient])(inChunks(bytes, length)))
    t.same(await whole(decrypting(identity)(inChunks(sealed, length))), bytes, `${length}`)
  }
})

test('any of several keys opens it, and no other does', async t => {
  const other = await makeKeyPair()
  const stranger = await makeKeyPair()
  const sealed = await encryptBytes([recipient, other.recipient], Buffer.from('rows'))
  t.equal((await decryptBytes(other.identity, sealed)).toString(), 'rows')
  t.equal((await decryptBytes(identity, sealed)).toString(), 'rows')
  const refused = await decryptBytes(stranger.identity, sealed).catch((error: unknown) => error)
  t.match(refused, { reason: 'other-key' })
})

test('a changed bit, a missing end and a missing piece are found before their bytes are given out', async t => {
  const bytes = randomBytes(3 * piece)
  const sealed = await encryptBytes([recipient], bytes)
  for (const place of [0, 30, 60, 250, sealed.length >> 1, sealed.length - 1]) {
    const changed = Buffer.from(sealed)
    changed.writeUInt8(changed.readUInt8(place) ^ 1, place)
    await t.rejects(decryptBytes(identity, changed), AgeError, `bit of byte ${place}`)
  }
  for (const length of [0, 10, 190, sealed.length - piece - 16, sealed.length - 1])
    await t.rejects(decryptBytes(identity, sealed.subarray(0, length)), AgeError, `${length} bytes of it`)
  const sealedPiece = piece + 16
  const without = Buffer.concat([
    sealed.subarray(0, sealed.length - 2 * sealedPiece),
    sealed.subarray(sealed.length - sealedPiece)
  ])
  await t.rejects(decryptBytes(identity, without), AgeError, 'a piece of the middle is missing')
  await t.rejects(decryptBytes(identity, Buffer.concat([sealed, Buffer.from('x')])), AgeError, 'more follows')
})

test('what is no recipient is told apart', async t => {
  t.equal(await isRecipient(recipient), true)
  for (const text of ['', 'age1', identity, '/etc/passwd']) t.equal(await isRecipient(text), false, text)
})
