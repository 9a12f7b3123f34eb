/** What a client has sent for HTTP Basic authentication (RFC 7617). */
interface BasicCredentials {
  readonly username: string
  readonly password: string
}

/** Of an `Authorization` header; undefined where it is none of that kind. */
export function readBasicCredentials(header: string | undefined): BasicCredentials | undefined {
  if (header === undefined || !/^basic /i.test(header)) return undefined
  const text = Buffer.from(header.slice('basic '.length).trim(), 'base64').toString('utf8')
  const colon = text.indexOf(':')
  return colon < 0 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}
