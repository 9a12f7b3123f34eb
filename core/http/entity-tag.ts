import { hash } from 'node:crypto'

/** 132 bits of the digest, as base64url. */
const digestLength = 22

/**
 * The entity tag of what this text stands for. A weak one: the same answer in another content coding has it too, and a version
 * says that an answer means the same, not that its bytes are.
 */
export const entityTag = (text: string | Buffer): string =>
  `W/"${hash('sha256', text, 'base64url').slice(0, digestLength)}"`

/** Whether an `If-None-Match` has the tag, by the weak comparison that it takes (RFC 9110, 13.1.2). */
export const hasTag = (ifNoneMatch: string | undefined, tag: string): boolean =>
  // Digests hold no quotes: with its own, one stands in the list as a whole or not at all.
  ifNoneMatch !== undefined && (ifNoneMatch.trim() === '*' || ifNoneMatch.includes(tag.slice('W/'.length)))
