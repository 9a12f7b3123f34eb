import * as age from 'busbar/sdk/age'
import { ArchiveError } from './manifest.js'

/** For `pipeline`; see `busbar/sdk/age`. What does not open is an `ArchiveError`. */
export const decrypting = (identity: string) =>
  async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
    try {
      yield* age.decrypting(identity)(source)
    } catch (error) {
      throw notOpened(error)
    }
  }

export async function decryptBytes(identity: string, bytes: Uint8Array): Promise<Buffer> {
  return await age.decryptBytes(identity, bytes).catch((error: unknown) => {
    throw notOpened(error)
  })
}

function notOpened(error: unknown): unknown {
  if (!(error instanceof age.AgeError)) return error
  return new ArchiveError(
    error.reason === 'other-key'
      ? 'the recovery key does not open this archive: it was encrypted to another one, without which nobody can open it, or its beginning is damaged'
      : `the archive cannot be decrypted: ${error.message}`,
    { cause: error }
  )
}
