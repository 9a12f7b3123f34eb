import { ReadableStream } from 'node:stream/web'
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { ArchiveError } from './manifest.js'

/*
 * age (age-encryption.org/v1): what is encrypted here `age --decrypt` opens too, and a recovery key is an identity that
 * `age-keygen` might have made.
 */

/** A recovery key: a text beginning with `AGE-SECRET-KEY-`, and what is encrypted to it, which is no secret. */
interface KeyPair {
  readonly identity: string
  readonly recipient: string
}

export async function makeKeyPair(): Promise<KeyPair> {
  const identity = await generateX25519Identity()
  return { identity, recipient: await identityToRecipient(identity) }
}

/** What is encrypted to this key. Throws where the text is no recovery key. */
export async function recipientOf(identity: string): Promise<string> {
  return await identityToRecipient(identity)
}

/** Whether something can be encrypted to it. */
export function isRecipient(text: string): boolean {
  try {
    new Encrypter().addRecipient(text)
    return true
  } catch {
    return false
  }
}

function encrypter(recipients: readonly string[]): Encrypter {
  const made = new Encrypter()
  for (const recipient of recipients) made.addRecipient(recipient)
  return made
}

/** For `pipeline`: any of the recipients opens what comes out. Holds some 64 KiB at a time. */
export const encrypting = (recipients: readonly string[]) =>
  async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
    yield* await encrypter(recipients).encrypt(bytesOf(source))
  }

/** For `pipeline`. Each 64 KiB are given out once they are proven to be what was encrypted, in its place. */
export const decrypting = (identity: string) =>
  async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
    const decrypter = new Decrypter()
    decrypter.addIdentity(identity)
    const opened = await decrypter.decrypt(bytesOf(source)).catch((error: unknown) => {
      throw notOpened(error)
    })
    yield* opened
  }

export async function encryptBytes(recipients: readonly string[], bytes: Uint8Array): Promise<Buffer> {
  return Buffer.from(await encrypter(recipients).encrypt(bytes))
}

export async function decryptBytes(identity: string, bytes: Uint8Array): Promise<Buffer> {
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  const opened = await decrypter.decrypt(bytes).catch((error: unknown) => {
    throw notOpened(error)
  })
  return Buffer.from(opened)
}

const bytesOf = (source: AsyncIterable<Buffer>): globalThis.ReadableStream<Uint8Array> =>
  ReadableStream.from(source) as unknown as globalThis.ReadableStream<Uint8Array>

const notOpened = (error: unknown): Error => {
  const reason = error instanceof Error ? error.message : String(error)
  return reason.includes('no identity matched')
    ? new ArchiveError(
        'the recovery key does not open this archive: it was encrypted to another one, without which nobody can open it, or its beginning is damaged',
        { cause: error }
      )
    : new ArchiveError(`the archive cannot be decrypted, as it is damaged or not whole: ${reason}`, {
        cause: error
      })
}
