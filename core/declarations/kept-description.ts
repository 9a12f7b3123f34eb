import { randomUUID } from 'node:crypto'

/** A description as it is sent, and which one it is. */
export interface KeptDescription {
  readonly text: string
  readonly version: string
}

/** Made when it is asked for first, and again once `subject` is another object: what is described does not change in itself. */
export function keptDescription<T extends object>(
  subject: () => T,
  describe: (subject: T) => object
): () => KeptDescription {
  let of: T | undefined
  let kept: KeptDescription = { text: '', version: '' }
  return () => {
    const now = subject()
    if (now !== of) {
      kept = { text: JSON.stringify(describe(now)), version: randomUUID() }
      of = now
    }
    return kept
  }
}
