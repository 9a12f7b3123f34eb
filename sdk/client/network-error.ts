/** No answer came: what was tried, why it failed, and what helps. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'

  constructor(
    readonly method: string,
    /** Where the request went, without names, passwords and queries; what is in braces in the path is left so. */
    readonly address: string,
    /** What the system calls it: `ECONNREFUSED`; `TIMEOUT` when the time of the request was over, `UNKNOWN` in a browser, which does not tell. */
    readonly code: string,
    /** What helps, in a sentence. */
    readonly remedy: string,
    options: ErrorOptions
  ) {
    super(`${method} ${address} failed with ${code}: ${remedy}`, options)
  }
}

const offline = 'nothing listens there: is the platform running, and are host and port right?'
const unresolved = 'the name of the host cannot be resolved: is it spelt right, and does DNS work?'
const unreachable = 'there is no way to that host: is it up, and does a firewall let you through?'
const broken =
  'the connection broke before the answer came: the platform may have restarted; look whether it has been done, and try again'
const untrusted =
  'the certificate is not one that this machine trusts: give its authority in NODE_EXTRA_CA_CERTS, or renew it'
const notTls = 'what listens there speaks no TLS: try http:// instead of https://'

const remedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: offline,
  ENOTFOUND: unresolved,
  EAI_AGAIN: unresolved,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ETIMEDOUT: unreachable,
  UND_ERR_CONNECT_TIMEOUT: unreachable,
  ECONNRESET: broken,
  EPIPE: broken,
  UND_ERR_SOCKET: broken,
  CERT_HAS_EXPIRED: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name: use the name that it is for',
  ERR_SSL_WRONG_VERSION_NUMBER: notTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: notTls,
  EPROTO: notTls,
  ERR_INVALID_URL: 'that is no address: give `url` as http://host:port',
  TIMEOUT: 'no answer came in time: try again, or allow more by timeoutMs',
  UNKNOWN:
    'look into the console of the browser: the page may not be allowed to ask (CORS_ORIGINS of the platform), or the platform is not there'
}

const seeCause = 'see the cause of this error'

/** What a `fetch` that has thrown is to its caller. */
export function networkErrorOf(method: string, base: string, path: string, error: unknown): NetworkError {
  const code = codeOf(error)
  const remedy = (code === 'UNKNOWN' && !('document' in globalThis) ? undefined : remedies[code]) ?? seeCause
  return new NetworkError(method, addressWithoutSecrets(base, path), code, remedy, { cause: error })
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN'
  if (error.name === 'TimeoutError') return 'TIMEOUT'
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  return cause === undefined || cause === error ? 'UNKNOWN' : codeOf(cause)
}

function addressWithoutSecrets(base: string, path: string): string {
  try {
    const { origin, pathname } = new URL(base)
    return origin + pathname.replace(/\/$/, '') + path
  } catch {
    return path
  }
}
