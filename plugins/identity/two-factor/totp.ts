/** Loaded on first use: otplib and what draws QR codes take 10 MB, and most sign in without. */
import { generateSecret, generateURI, verifySync } from 'otplib'
import { toDataURL } from 'qrcode'

const periodSeconds = 30
const issuer = 'Busbar'

/** A new shared secret: 160 bits in base32. */
export const newTotpSecret = (): string => generateSecret({ length: 20 })

/** What an authenticator application reads from a QR code. */
export const totpUri = (email: string, secret: string): string =>
  generateURI({ issuer, label: email, secret })

/** The same as an image: a PNG as a data URL, for the `src` of an `img`. */
export const totpImage = async (uri: string): Promise<string> =>
  await toDataURL(uri, { type: 'image/png', errorCorrectionLevel: 'M', margin: 2, scale: 6 })

type TotpVerdict = { readonly kind: 'right'; readonly step: number } | { readonly kind: 'reused' | 'wrong' }

/** Six digits, SHA-1, 30 s, one step early or late. A step that was accepted before, or an earlier one, counts no more. */
export function checkTotp(secret: string, code: string, now: Date, lastStep: number | null): TotpVerdict {
  const token = code.replaceAll(/\s/g, '')
  if (!/^\d{6}$/.test(token)) return { kind: 'wrong' }
  const result = verifySync({
    secret,
    token,
    epoch: Math.floor(now.getTime() / 1000),
    period: periodSeconds,
    epochTolerance: periodSeconds
  })
  if (!result.valid || !('timeStep' in result)) return { kind: 'wrong' }
  return lastStep !== null && result.timeStep <= lastStep
    ? { kind: 'reused' }
    : { kind: 'right', step: result.timeStep }
}
