/**
 * age (age-encryption.org/v1): what is encrypted here `age --decrypt` opens too, and a key is an identity that `age-keygen` might
 * have made.
 */

export { AgeError } from './age-error.js'
export { decryptBytes, decrypting, encryptBytes, encrypting } from './encryption.js'
export { isRecipient, type KeyPair, makeKeyPair, recipientOf } from './keys.js'
