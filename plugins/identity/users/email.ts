import { problems } from '../problems.js'

// One @ with something on either side and no blanks: a stricter rule refuses addresses that exist.
const shape = /^[^\s@\u0000-\u001f"<>(),:;]+@[^\s@\u0000-\u001f"<>(),:;]+$/u
const maxEmailLength = 254

/** How an address is compared and kept. */
export const normaliseEmail = (email: string): string => email.trim().toLowerCase()

/** The address as it is kept; 400 when it is none. */
export function checkedEmail(email: string): string {
  const normal = normaliseEmail(email)
  if (normal.length > maxEmailLength || !shape.test(normal)) throw problems.emailInvalid()
  return normal
}
