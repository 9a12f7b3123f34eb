/** The library has forms of keys that nobody here uses, and takes some memory: only who encrypts pays for it. */
export const loadAge = async () => await import('age-encryption')

/** A text beginning with `AGE-SECRET-KEY-`, and what is encrypted to it, which is no secret. */
export interface KeyPair {
  readonly identity: string
  readonly recipient: string
}

export async function makeKeyPair(): Promise<KeyPair> {
  const { generateX25519Identity, identityToRecipient } = await loadAge()
  const identity = await generateX25519Identity()
  return { identity, recipient: await identityToRecipient(identity) }
}

/** What is encrypted to this key. Rejects where the text is no key. */
export async function recipientOf(identity: string): Promise<string> {
  const { identityToRecipient } = await loadAge()
  return await identityToRecipient(identity)
}

/** Whether something can be encrypted to it. */
export async function isRecipient(text: string): Promise<boolean> {
  const { Encrypter } = await loadAge()
  try {
    new Encrypter().addRecipient(text)
    return true
  } catch {
    return false
  }
}
