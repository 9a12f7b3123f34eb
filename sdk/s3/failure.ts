import type { AnswerFault } from './bounded-answers.js'
import { S3Error, type S3Settings } from './settings.js'

type Place = Pick<S3Settings, 'bucket' | 'region'> & { readonly host: string }

interface Fault {
  readonly name?: unknown
  readonly code?: unknown
  readonly Code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
}

const refusedKeys: ReadonlySet<string> = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'CredentialsProviderError'
])
const otherRegions: ReadonlySet<string> = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'TemporaryRedirect',
  'IllegalLocationConstraintException'
])
const silent: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'TimeoutError'
])
const cutOff: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE'
])

const busy: ReadonlySet<number | undefined> = new Set([429, 500, 502, 503, 504])

/** Whether it may work a moment later: the store is away or busy, and has refused nothing. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof S3Error) return false
  const code = codeOf(error)
  return silent.has(code) || cutOff.has(code) || busy.has((error as Fault).$metadata?.httpStatusCode)
}

const answerFaults: Readonly<Record<AnswerFault, string>> = {
  ANSWER_TOO_LONG: 'answers with more than any store does',
  ANSWER_TOO_SLOW: 'does not come to the end of an answer'
}

/** What a store, or the way there, has refused, in words of ours: its own may be of anybody. */
export function s3Failure(error: unknown, place: Place): Error {
  if (error instanceof S3Error) return error
  if (!(error instanceof Error)) return new S3Error(`the store at ${place.host} failed`)
  const status = (error as Fault).$metadata?.httpStatusCode
  const code = isLate(error) ? late : codeOf(error)
  return new S3Error(sentence(place, code, status), { cause: error })
}

/** A request that went on for as long as it may: its connection has moved bytes until then. */
const isLate = ({ message }: Error): boolean => message.includes('requestTimeout')
const late = 'TooSlow'

function sentence({ host, bucket, region }: Place, code: string, status: number | undefined): string {
  if (code === late)
    return `${host} is too slow: a request was not answered in the time it has; use a store that is nearer, or a faster connection`
  if (silent.has(code))
    return `${host} does not answer (${code}): check the endpoint, and whether a firewall is in between`
  const cut = answerFaults[code as AnswerFault]
  if (cut !== undefined) return `${host} ${cut}: check the endpoint`
  if (cutOff.has(code)) return `${host} has cut the connection off (${code}): try again`
  if (refusedKeys.has(code))
    return `${host} does not know these keys (${code}): check access_key and secret_key`
  if (code === 'RequestTimeTooSkewed')
    return `${host} says that the clock of this machine is wrong: let it follow a time server`
  if (otherRegions.has(code) || status === 301)
    return `the bucket ${bucket} is in another region than ${region} (${code}): correct region or endpoint`
  if (code === 'NoSuchBucket' || (code === 'NotFound' && status === 404))
    return `there is no bucket ${bucket} at ${host}: make it, or correct its name`
  if (code === 'NoSuchKey') return `there is no such object in ${bucket}`
  if (status === 401 || status === 403)
    return `${host} refuses these keys the bucket ${bucket} (${code}): they need to list, read, write and delete its objects`
  if (status === 507) return `the store at ${host} is full (${code})`
  if (
    code.startsWith('ERR_SSL') ||
    code.startsWith('CERT_') ||
    code.includes('SELF_SIGNED') ||
    code.startsWith('UNABLE_TO_') ||
    code === 'EPROTO'
  )
    return `the TLS connection to ${host} failed (${code}): check use_ssl; an authority of your own is named by NODE_EXTRA_CA_CERTS`
  return `${host} answered ${status === undefined ? code : `${status} ${code}`}`
}

/** Codes come from the store: of letters and digits only, and short. */
function codeOf(error: Fault & Error): string {
  for (const one of [error.Code, error.code, error.name])
    if (typeof one === 'string' && one !== 'Error') return one.slice(0, 60).replace(/[^A-Za-z0-9_.-]/g, '?')
  return 'unknown'
}
