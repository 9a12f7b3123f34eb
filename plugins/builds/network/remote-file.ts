import { open, rm, utimes } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { isProblem, type Problem } from 'busbar/sdk'
import { problems } from '../problems.js'
import { hostOf, openBound, redirectStatuses, withoutUser } from './bound-request.js'
import { type HostRules, resolveHost } from './host-resolution.js'

export interface RemoteFileLimits {
  readonly maxBytes: number
  /** In all, redirects and every byte included. */
  readonly timeoutMs: number
  /** How long the host may send nothing; 30 s unless given. */
  readonly silenceMs?: number
  readonly signal: AbortSignal
}

export interface RemoteFile {
  /** As the classic builder names it: from the path of the address, else from the answer; null when neither tells. */
  readonly name: string | null
  readonly bytes: number
  /** Its Last-Modified; without one the beginning of 1970, so that a cached step stays valid. */
  readonly modifiedAt: Date
}

const maxRedirects = 10
const defaultSilenceMs = 30_000

/**
 * Fetches what an ADD names, in the place of the engine: `destination` is a new file then, readable by its owner
 * alone and as old as its host says, as the classic builder makes it. Every host on the way is under the host rules.
 * Rejects with E_SOURCE_HOST_* or E_REMOTE_FILE_*, and with the reason of `signal`; no file is left then.
 */
export async function fetchRemoteFile(
  url: string,
  destination: string,
  rules: HostRules,
  limits: RemoteFileLimits
): Promise<RemoteFile> {
  const first = parseAddress(url)
  const watch = new TransferWatch(shown(first), limits)
  try {
    const answer = await followRedirects(first, rules, watch)
    const bytes = await store(answer, destination, shown(first), limits.maxBytes, watch)
    const modifiedAt = lastModified(answer)
    await utimes(destination, modifiedAt, modifiedAt)
    return { name: fileName(first, answer), bytes, modifiedAt }
  } catch (error) {
    limits.signal.throwIfAborted()
    throw problemOf(error, shown(first), watch)
  } finally {
    watch.end()
  }
}

/** An address for a log: without a password, and without its query. Rejects what is none with E_REMOTE_FILE_ADDRESS. */
export const shownAddress = (url: string): string => shown(parseAddress(url))

function parseAddress(text: string): URL {
  const isAddress =
    /^https?:\/\//i.test(text) &&
    URL.canParse(text) &&
    !/[\s\u0000-\u001f\u007f]/.test(text) &&
    text.length <= 2000
  if (!isAddress) throw problems.badFileAddress({ url: text.replace(/\/\/[^/@]*@/, '//').slice(0, 300) })
  return new URL(text)
}

/** Without a password, and without what may be one: a query can hold a signature. */
function shown(url: URL): string {
  const plain = withoutUser(url)
  return (plain.origin + plain.pathname).slice(0, 300)
}

async function followRedirects(first: URL, rules: HostRules, watch: TransferWatch): Promise<IncomingMessage> {
  let url = first
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const addresses = await watch.race(resolveHost(hostOf(url), rules, 'host of a remote file'))
    // What was written into the first address is for its host alone.
    const credentials = url.origin === first.origin ? authorization(first) : {}
    const answer = await openBound({
      url,
      addresses,
      signal: watch.signal,
      headers: { 'user-agent': 'busbar', accept: '*/*', 'accept-encoding': 'identity', ...credentials }
    })
    watch.heard()
    const {
      statusCode: status = 0,
      headers: { location }
    } = answer
    if (status >= 200 && status < 300) return answer
    answer.destroy()
    if (!redirectStatuses.has(status) || location === undefined)
      throw problems.fileStatus({ url: shown(url), status })
    url = redirected(url, location)
  }
  throw problems.fileRedirect({
    url: shown(first),
    target: shown(url),
    reason: `there are more than ${maxRedirects} redirects`
  })
}

function redirected(from: URL, location: string): URL {
  const refuse = (target: string, reason: string): Problem =>
    problems.fileRedirect({ url: shown(from), target, reason })
  if (!URL.canParse(location, from.href)) throw refuse(location.slice(0, 300), 'it is no address')
  const to = new URL(location, from)
  if (to.protocol !== 'https:' && to.protocol !== 'http:')
    throw refuse(to.protocol, 'only http and https are')
  if (from.protocol === 'https:' && to.protocol === 'http:')
    throw refuse(shown(to), 'it leaves the encrypted connection')
  return to
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  return {
    authorization: `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`
  }
}

async function store(
  answer: IncomingMessage,
  destination: string,
  url: string,
  maxBytes: number,
  watch: TransferWatch
): Promise<number> {
  const tooLarge = (): Problem => problems.remoteFileTooLarge({ url, limit: Math.round(maxBytes / 2 ** 20) })
  if (Number(answer.headers['content-length'] ?? 0) > maxBytes) {
    answer.destroy()
    throw tooLarge()
  }
  let bytes = 0
  const file = await open(destination, 'wx', 0o600).catch((error: unknown) => {
    answer.destroy()
    throw error
  })
  try {
    await pipeline(
      answer,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          watch.heard()
          bytes += chunk.length
          if (bytes > maxBytes) throw tooLarge()
          yield chunk
        }
      },
      file.createWriteStream(),
      { signal: watch.signal }
    )
  } catch (error) {
    await rm(destination, { force: true })
    throw error
  }
  return bytes
}

/** Ends a transfer that is silent, or takes too long, or is not wanted any more. */
class TransferWatch {
  readonly #over = new AbortController()
  readonly #late: NodeJS.Timeout
  readonly #silence: NodeJS.Timeout
  readonly signal: AbortSignal

  constructor(url: string, { timeoutMs, silenceMs = defaultSilenceMs, signal }: RemoteFileLimits) {
    const giveUp = (reason: string) => () => this.#over.abort(problems.fileTimeout({ url, reason }))
    this.#late = setTimeout(giveUp(`it took longer than ${timeoutMs / 1000} s`), timeoutMs)
    this.#silence = setTimeout(giveUp(`its host sent nothing for ${silenceMs / 1000} s`), silenceMs)
    this.signal = AbortSignal.any([signal, this.#over.signal])
  }

  heard(): void {
    this.#silence.refresh()
  }

  /** Why it was given up; undefined when it was not. */
  get reason(): unknown {
    return this.#over.signal.reason
  }

  /** For work that takes no signal. */
  async race<T>(work: Promise<T>): Promise<T> {
    const { signal } = this
    signal.throwIfAborted()
    let stop = (): void => {}
    const aborted = new Promise<never>((_, reject) => {
      stop = () => {
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', stop, { once: true })
    })
    return await Promise.race([work, aborted]).finally(() => {
      signal.removeEventListener('abort', stop)
    })
  }

  end(): void {
    clearTimeout(this.#late)
    clearTimeout(this.#silence)
  }
}

function problemOf(error: unknown, url: string, watch: TransferWatch): unknown {
  if (isProblem(watch.reason)) return watch.reason
  if (isProblem(error) || !(error instanceof Error)) return error
  const code = 'code' in error ? error.code : undefined
  if (code === 'EEXIST') return error
  if (code === 'ENOSPC' || code === 'EDQUOT') return problems.fileDiskFull({ url })
  return problems.fileUnreachable({ url, reason: error.message === '' ? String(code) : error.message })
}

function lastModified({ headers }: IncomingMessage): Date {
  const time = Date.parse(headers['last-modified'] ?? '')
  return new Date(time > 0 ? time : 0)
}

function fileName(url: URL, { headers }: IncomingMessage): string | null {
  const path = decoded(url.pathname)
  const told = /;\s*filename="?([^";]+)"?/i.exec(headers['content-disposition'] ?? '')?.[1] ?? ''
  for (const text of [path, told]) {
    const name = text.endsWith('/') ? '' : (text.split('/').at(-1) ?? '')
    if (!['', '.', '..'].includes(name) && !name.includes('\0')) return name
  }
  return null
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
