/** Codes of authenticator applications, on first use: otplib and what draws QR codes take 10 MB, and most sign in without. */
export const loadTotp = async (): Promise<typeof import('./totp.js')> => await import('./totp.js')
