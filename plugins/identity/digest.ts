import { hash } from 'node:crypto'

/** What is kept of a random value that is shown once: a plain SHA-256 of it cannot be searched. */
export const digestOf = (value: string): string => hash('sha256', value, 'base64url')
