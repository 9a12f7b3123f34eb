import { randomBytes } from 'node:crypto'
import { AgeError, damaged } from './age-error.js'
import { loadAge } from './keys.js'
import { openPieces, payloadKey, saltBytes, sealPieces } from './payload.js'

const longestHead = 64 * 1024
const newline = 0x0a
const footMark = Buffer.from('--- ')

/** For `pipeline`: any of the recipients opens what comes out. Holds some 64 KiB at a time. */
export const encrypting = (recipients: readonly string[]) =>
  async function* (source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
    const { head, fileKey } = await makeHead(recipients)
    const salt = randomBytes(saltBytes)
    yield Buffer.concat([head, salt])
    yield* sealPieces(payloadKey(fileKey, salt), source)
  }

/** For `pipeline`. Each 64 KiB are given out once they are proven to be what was encrypted, in its place. Fails with an `AgeError`. */
export const decrypting = (identity: string) =>
  async function* (source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
    const iterator = source[Symbol.asyncIterator]()
    try {
      const { head, rest } = await readHead(iterator)
      const fileKey = await openHead(identity, head)
      const salt = rest.subarray(0, saltBytes)
      yield* openPieces(payloadKey(fileKey, salt), following(rest.subarray(saltBytes), iterator))
    } finally {
      await iterator.return?.(undefined)
    }
  }

export async function encryptBytes(recipients: readonly string[], bytes: Uint8Array): Promise<Buffer> {
  return await collect(encrypting(recipients)(once(bytes)))
}

export async function decryptBytes(identity: string, bytes: Uint8Array): Promise<Buffer> {
  return await collect(decrypting(identity)(once(bytes)))
}

/** The library writes the head, and tells the key of the file to one more recipient, which adds nothing to it. */
async function makeHead(
  recipients: readonly string[]
): Promise<{ readonly head: Buffer; readonly fileKey: Uint8Array }> {
  const { Encrypter } = await loadAge()
  const encrypter = new Encrypter()
  for (const recipient of recipients) encrypter.addRecipient(recipient)
  let fileKey: Uint8Array | undefined
  encrypter.addRecipient({
    wrapFileKey: key => {
      fileKey = Uint8Array.from(key)
      return []
    }
  })
  const empty = Buffer.from(await encrypter.encrypt(new Uint8Array(0)))
  const end = endOfHead(empty)
  if (fileKey === undefined || end === undefined) throw new Error('the library writes another head')
  return { head: empty.subarray(0, end), fileKey }
}

async function openHead(identity: string, head: Buffer): Promise<Uint8Array> {
  const { Decrypter } = await loadAge()
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  try {
    return await decrypter.decryptHeader(head)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw reason.includes('no identity matched')
      ? new AgeError('other-key', 'it was encrypted to another key', { cause: error })
      : damaged(reason, error)
  }
}

/** Up to the end of the head, and at least the salt behind it. */
async function readHead(
  iterator: AsyncIterator<Uint8Array>
): Promise<{ readonly head: Buffer; readonly rest: Buffer }> {
  let held = Buffer.alloc(0)
  for (;;) {
    const end = endOfHead(held)
    if (end !== undefined && held.length >= end + saltBytes)
      return { head: held.subarray(0, end), rest: held.subarray(end) }
    if (held.length > longestHead) throw damaged('it does not begin as an encrypted file does')
    const next = await iterator.next()
    if (next.done === true) throw damaged('its head is not whole')
    held = Buffer.concat([held, next.value])
  }
}

/** Where the line ends that closes a head; undefined where it is not there yet. */
function endOfHead(bytes: Buffer): number | undefined {
  for (let at = 0; ; ) {
    const end = bytes.indexOf(newline, at)
    if (end < 0) return undefined
    if (bytes.subarray(at, at + footMark.length).equals(footMark)) return end + 1
    at = end + 1
  }
}

async function* following(rest: Buffer, iterator: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield rest
  for (;;) {
    const next = await iterator.next()
    if (next.done === true) return
    yield next.value
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function collect(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}
