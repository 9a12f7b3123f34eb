import { isProblem } from 'busbar/sdk'
import { NoAnswer } from '../../network/bound-request.js'
import { RegistryFailure } from './registry-failure.js'

/** What a connection, its TLS or its HTTP failed by; undefined for what is no fault of these. */
export function connectionFailure(error: unknown): RegistryFailure | undefined {
  if (error instanceof RegistryFailure) return error
  if (isProblem(error))
    return error.code === 'E_SOURCE_HOST_UNKNOWN' ? new RegistryFailure('unknown', error.message) : undefined
  if (error instanceof NoAnswer) return new RegistryFailure('answer', error.message)
  const code = codeOf(error)
  if (!(error instanceof Error) || code === '') return undefined
  if (isWithoutTls(error)) return new RegistryFailure('plainHttp', code)
  if (isAboutTls(error, code)) return new RegistryFailure('tls', wordsOf(error))
  if (code.startsWith('HPE_')) return new RegistryFailure('answer', `it does not speak HTTP (${code})`)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return new RegistryFailure('unknown', code)
  if (connectionCodes.has(code)) return new RegistryFailure('unreachable', wordsOf(error))
  // Of the operating system; what begins with ERR_ is a mistake of ours.
  return code.startsWith('E') && !code.startsWith('ERR_')
    ? new RegistryFailure('other', wordsOf(error))
    : undefined
}

/** Whether what answers may well be a plain HTTP server: its answer is no TLS, or it hung up in the middle of it. */
export const mayBePlainHttp = (error: unknown): boolean =>
  isWithoutTls(error) || ['ECONNRESET', 'EPIPE'].includes(codeOf(error))

const connectionCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_SOCKET_CONNECTION_TIMEOUT'
])

const isWithoutTls = (error: unknown): boolean =>
  error instanceof Error &&
  /wrong[ _]version[ _]number|packet[ _]length[ _]too[ _]long|unknown[ _]protocol|http[ _]request/i.test(
    `${codeOf(error)} ${error.message.slice(0, 1000)}`
  )

const isAboutTls = ({ message }: Error, code: string): boolean =>
  /^(?:EPROTO|ERR_SSL_|ERR_TLS_|CERT_|CRL_|UNABLE_TO_|INVALID_CA$|HOSTNAME_MISMATCH$|PATH_LENGTH_EXCEEDED$|INVALID_PURPOSE$)/.test(
    code
  ) || /SELF_SIGNED_CERT|^certificate /.test(`${code}${message.slice(0, 20)}`)

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** An error of OpenSSL tells its source files too; that of several addresses tells nothing but its code. */
function wordsOf(error: Error): string {
  if ('reason' in error && typeof error.reason === 'string') return error.reason
  const [first = ''] = error.message.split('\n', 1)
  return first === '' ? codeOf(error) : first
}
