/** What is encrypted cannot be opened: with another key than the right one, or because it is not what was written. */
export class AgeError extends Error {
  override readonly name = 'AgeError'

  constructor(
    readonly reason: 'other-key' | 'damaged',
    message: string,
    options?: ErrorOptions
  ) {
    super(message, options)
  }
}

export const damaged = (what: string, cause?: unknown): AgeError =>
  new AgeError('damaged', `it is damaged or not whole: ${what}`, { cause })
