/** A bucket of a store that speaks the protocol of S3, and the keys to it. */
export interface S3Settings {
  /** A host with its port where it has one, without scheme; '' is Amazon's own of the region. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly useSsl: boolean
  readonly accessKey: string
  readonly secretKey: string
  /**
   * Why the host is not connected to at an address that its name leads to, in a sentence; null where it may be. Asked of each
   * connection. Left out: every address may be.
   */
  readonly refuses?: (host: string, address: string) => string | null
}

export interface S3Object {
  readonly key: string
  readonly bytes: number
}

/** In a sentence what the store did not do, and what helps. It has no secrets. */
export class S3Error extends Error {}

/** The host that somebody has written, with its port: people write addresses, and the scheme is a setting of its own. Undefined for what is none. */
export function s3Endpoint(written: string): string | undefined {
  const text = written.trim()
  if (text === '') return ''
  const address = /^https?:\/\//.test(text) ? text : `https://${text}`
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (
    url === undefined ||
    url.pathname !== '/' ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== '' ||
    url.password !== ''
  )
    return undefined
  return url.host
}
