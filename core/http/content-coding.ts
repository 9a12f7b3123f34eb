import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import Negotiator from 'negotiator'

export type Coding = 'br' | 'gzip'

/** Of those that a client likes as well: the one that makes less of it, in less time. */
const preferred = ['br', 'gzip', 'identity']

/** What clients say is said again and again; there are few kinds of them. */
const decided = new Map<string, Coding | null>()
const mostDecided = 100
/** Characters: beyond, it is no header of anybody who would make use of the answer. */
const longestHeader = 200

/** The content coding that an `Accept-Encoding` asks for; null for none. Who refuses all gets the answer as it is. */
export function codingFor(acceptEncoding: string | undefined): Coding | null {
  if (acceptEncoding === undefined || acceptEncoding.length > longestHeader) return null
  const known = decided.get(acceptEncoding)
  if (known !== undefined) return known
  const [best] = new Negotiator({ headers: { 'accept-encoding': acceptEncoding } }).encodings(preferred, {
    preferred
  })
  const coding = best === 'br' || best === 'gzip' ? best : null
  if (decided.size < mostDecided) decided.set(acceptEncoding, coding)
  return coding
}

const compressors: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  gzip: promisify(gzip) as (bytes: Buffer) => Promise<Buffer>,
  br: bytes =>
    brotli(bytes, { params: { ...brotliParams, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } })
}
const brotli = promisify(brotliCompress) as (
  bytes: Buffer,
  options: { readonly params: Readonly<Record<number, number>> }
) => Promise<Buffer>
/** Better than gzip in less time; the next quality takes twice as long for some percent. */
const brotliParams = {
  [constants.BROTLI_PARAM_QUALITY]: 4,
  [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT
}

/** Of the four threads that also hash passwords and read files. */
const mostAtOnce = 2
/** Bytes: below, what is saved is less than a packet, beyond, a thread would be held for long. */
const worthIt = 1024
const longest = 8 * 2 ** 20

export const isWorthCompressing = (bytes: number): boolean => bytes >= worthIt && bytes <= longest

let underWay = 0

/** The bytes in the coding, made on another thread; undefined when as many as may are being made. */
export async function compress(bytes: Buffer, coding: Coding): Promise<Buffer | undefined> {
  if (underWay >= mostAtOnce) return undefined
  underWay++
  try {
    return await compressors[coding](bytes)
  } finally {
    underWay--
  }
}
