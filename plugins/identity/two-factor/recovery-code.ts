import { randomBytes } from 'node:crypto'
import { digestOf } from '../digest.js'
import { recoveryCodes } from '../policy.js'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Ten codes of 80 bits, each `XXXX-XXXX-XXXX-XXXX` in base32. */
export const newRecoveryCodes = (): string[] =>
  Array.from({ length: recoveryCodes }, () => {
    // 256 is a multiple of 32: every letter is as likely as the others.
    const letters = Array.from(randomBytes(16), byte => alphabet.charAt(byte % 32)).join('')
    return letters.replace(/(.{4})(?=.)/g, '$1-')
  })

/** Dashes, blanks and case play no part. */
export const digestOfRecoveryCode = (code: string): string =>
  digestOf(code.toUpperCase().replaceAll(/[\s-]/g, ''))
