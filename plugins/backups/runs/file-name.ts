import type { SourceKind } from '../api.js'

interface Naming {
  readonly kind: SourceKind
  readonly slug: string
  readonly at: Date
  readonly isEncrypted: boolean
  /** Of a tar the name says so. */
  readonly format: string
}

/** `shop-db-20261129T020000Z.backup.gz`, of a volume `shop-uploads-20261129T020000Z.tar.gz`; with `.age` behind it when it is encrypted. */
export function fileName({ kind, slug, at, isEncrypted, format }: Naming): string {
  const stamp = `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const ending = kind === 'volume' && format === 'tar' ? 'tar' : 'backup'
  return `${slug}-${stamp}.${ending}.gz${isEncrypted ? '.age' : ''}`
}

/** Letters, digits and a few signs; no part that leads elsewhere. '' is one, too. */
export const isKeyPart = (text: string): boolean =>
  text.length <= 500 &&
  /^[A-Za-z0-9._/-]*$/.test(text) &&
  text.split('/').every(part => part !== '.' && part !== '..')

/** Without slashes at both ends. */
export const trimSlashes = (text: string): string => {
  let from = 0
  let to = text.length
  while (from < to && text[from] === '/') from++
  while (to > from && text[to - 1] === '/') to--
  return text.slice(from, to)
}

export const keyOf = (...parts: readonly string[]): string => parts.filter(part => part !== '').join('/')
