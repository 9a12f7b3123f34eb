import { hash, randomBytes } from 'node:crypto'
import { type SecretKind, secretPrefixes } from 'busbar/sdk'

const randomLength = 43

/** 32 random bytes in base64url behind the prefix. */
export const newSecret = (kind: SecretKind): string =>
  secretPrefixes[kind] + randomBytes(32).toString('base64url')

/** Only this is stored. The values are random, so a plain SHA-256 cannot be searched. */
export const digestOf = (value: string): string => hash('sha256', value, 'base64url')

/** Looks at the outside only, which keeps nonsense away from the hash and the database. */
export const looksLike = (kind: SecretKind, value: string): boolean =>
  value.length === secretPrefixes[kind].length + randomLength && value.startsWith(secretPrefixes[kind])
