declare module 'pg/lib/utils.js' {
  /** A value as it is sent: a text, bytes, or null. */
  export function prepareValue(value: unknown): string | Buffer | null
}
