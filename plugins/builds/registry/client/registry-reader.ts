import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { bounded, type Clock, type Log } from 'busbar/sdk'
import { hostOf, openBound, redirectStatuses } from '../../network/bound-request.js'
import { isAllowlisted, isPrivateAddress } from '../../network/host-policy.js'
import { type HostRules, resolveHost } from '../../network/host-resolution.js'
import { answerFailure, type BadAnswer, errorCodes } from './answer-failure.js'
import { connectionFailure, mayBePlainHttp } from './connection-failure.js'
import { type PaceLimits, PaceWatch, usualPace } from './fetch-pace.js'
import { type ImageLocation, locateImage } from './image-location.js'
import { type AskedAs, quietProblem, RegistryFailure, registryProblem } from './registry-failure.js'
import { readChallenge, readToken } from './token-challenge.js'

/** Registry credentials for one pull. */
export interface RegistryAuth {
  readonly username: string
  readonly password: string
  /** Whose it is, for the words of a failure; absent: the application's own. */
  readonly of?: 'project' | 'installation'
}

/** With what a repository is read, and for whom. */
interface ReaderParts {
  readonly rules: HostRules
  readonly clock: Pick<Clock, 'every' | 'sleep'>
  /** Gets the reason of a failed fetch where the user must not see it. */
  readonly log: Pick<Log, 'info'>
  readonly auth?: RegistryAuth
  /** For a build, whose application has no account of its own; the words of a failure say so. */
  readonly isBase?: true
  /** `usualPace` unless given. */
  readonly pace?: PaceLimits
  /** Ends all that is read by it. */
  readonly signal: AbortSignal
}

/** What is asked of a repository. */
interface Question {
  /** `manifests/latest`, `blobs/sha256:…`; `/v2/`: of the registry itself. */
  readonly path: string
  /** GET unless given. */
  readonly method?: 'HEAD'
  readonly accept?: string
  /** The bytes before are here; what comes may begin with them all the same (200). */
  readonly from?: number
  readonly watch: PaceWatch
}

interface Whole {
  readonly bytes: Buffer
  readonly contentType: string | undefined
}

const maxRedirects = 5
const maxErrorBytes = 64 * 1024
const maxTokenBytes = 64 * 1024
const nameServerMs = 120_000

/**
 * Reads from the repository of one image, with one account, for one fetch, under the host rules. What its methods
 * reject with becomes a problem by `problemOf`.
 */
export class RegistryReader {
  readonly location: ImageLocation
  #scheme: 'https' | 'http' = 'https'
  /** It has answered over TLS: what breaks off later is no reason to do without. */
  #speaksTls = false
  #authorization: string | undefined
  #hasTokenOfAccount = false
  /** Whether what fails could speak of a host that the registry has led to. */
  #wasRedirected = false
  #tokenServicesAsked = 0

  constructor(
    readonly image: string,
    readonly parts: ReaderParts
  ) {
    this.location = locateImage(image)
  }

  /** For what one question, or a part of a fetch, brings. End it. */
  watch(signal: AbortSignal = this.parts.signal): PaceWatch {
    return new PaceWatch(this.parts.clock, this.parts.pace ?? usualPace, signal)
  }

  /** The whole of what is no longer than `maxBytes`. */
  async read(path: string, maxBytes: number, accept = '*/*'): Promise<Whole> {
    const watch = this.watch()
    try {
      const answer = await this.open({ path, accept, watch })
      const bytes = await readWhole(answer, maxBytes, watch)
      return { bytes, contentType: answer.headers['content-type'] }
    } catch (error) {
      throw watch.reasonOf(error)
    } finally {
      watch.end()
    }
  }

  /** What an answer says before its body, of which nothing is read. */
  async ask(question: Omit<Question, 'watch' | 'from'>): Promise<IncomingHttpHeaders> {
    const watch = this.watch()
    try {
      const answer = await this.open({ ...question, watch })
      answer.destroy()
      return answer.headers
    } catch (error) {
      throw watch.reasonOf(error)
    } finally {
      watch.end()
    }
  }

  /** The registry has asked for credentials, and was given some. */
  get wasAskedForAccount(): boolean {
    return this.#authorization !== undefined
  }

  /** The body has not begun: read it or destroy it. 200, or 206 where `from` is more than 0. */
  async open(question: Question): Promise<IncomingMessage> {
    const usedBefore = this.#authorization
    let asked = await this.#ask(question)
    if (asked.answer.statusCode === 401 && asked.by === 'registry') {
      asked.answer.destroy()
      // Another question may have renewed it meanwhile.
      if (this.#authorization === usedBefore)
        await this.#authorize(asked.answer.headers['www-authenticate'] ?? '', question.watch)
      asked = await this.#ask(question)
    }
    const { answer, by } = asked
    const { statusCode } = answer
    if (statusCode === 200 || (statusCode === 206 && (question.from ?? 0) > 0)) return answer
    throw await this.#failure(answer, by, question)
  }

  /** For the user who deploys: with a remedy, and without anything of the hosts that the registry has led to. */
  problemOf(error: unknown, image = this.image): unknown {
    const { log, signal } = this.parts
    if (signal.aborted) return signal.reason
    const failure = connectionFailure(error)
    if (failure === undefined) return error
    const wanted = { image, ...locateImage(image), as: this.#as }
    const problem = registryProblem(failure, wanted)
    const quiet = this.mayShowFailure ? undefined : quietProblem(failure, wanted)
    if (quiet !== undefined)
      log.info({ image, code: problem.code, reason: failure.message }, 'an image could not be fetched')
    return quiet ?? problem
  }

  get #as(): AskedAs {
    const { auth, isBase } = this.parts
    return auth !== undefined
      ? { username: auth.username, of: auth.of ?? 'application' }
      : isBase === true
        ? 'build'
        : 'anonymous'
  }

  /** No tenant decides what Docker Hub answers, nor what a host answers that the operator has allowlisted. */
  get mayShowFailure(): boolean {
    const { registry, host } = this.location
    return (
      registry === 'docker.io' ||
      (!this.#wasRedirected && this.#tokenServicesAsked === 0) ||
      isAllowlisted(this.parts.rules.hostPolicy, hostOf(new URL(`https://${host}`)))
    )
  }

  async #ask(question: Question) {
    try {
      return await this.#follow(question)
    } catch (error) {
      if (this.#speaksTls || this.#scheme === 'http' || !mayBePlainHttp(error)) throw error
      if (!(await this.#mayBePlain(question.watch))) throw error
      this.#scheme = 'http'
      return await this.#follow(question)
    }
  }

  /**
   * On this machine, as the engine takes it, or where the operator has named it, and it asks for no account. That
   * everything is allowed names no host: others may have it with private addresses only.
   */
  async #mayBePlain(watch: PaceWatch): Promise<boolean> {
    const { rules, auth } = this.parts
    const host = hostOf(new URL(`http://${this.location.host}`))
    if (isLocal(host)) return true
    const policy = rules.hostPolicy
    if (auth !== undefined || !isAllowlisted(policy, host)) return false
    return !policy.allowsAll || (await this.#resolve(host, 'registry', watch)).every(isPrivateAddress)
  }

  async #follow({ path, method, accept = '*/*', from = 0, watch }: Question) {
    const below = path.startsWith('/') ? path : `/v2/${this.location.path}/${path}`
    const first = new URL(`${this.#scheme}://${this.location.host}${below}`)
    let url = first
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const isOwn = url.host === first.host
      if (!isOwn) this.#wasRedirected = true
      const answer = await this.#get(
        url,
        watch,
        {
          accept,
          ...(from > 0 && { range: `bytes=${from}-` }),
          // A host that is redirected to gets no credentials of the registry.
          ...(url.origin === first.origin &&
            this.#authorization !== undefined && { authorization: this.#authorization })
        },
        { method }
      )
      if (isOwn && url.protocol === 'https:') this.#speaksTls = true
      const { location } = answer.headers
      if (!redirectStatuses.has(answer.statusCode) || location === undefined)
        return { answer, by: isOwn ? ('registry' as const) : ('elsewhere' as const) }
      answer.destroy()
      if (!URL.canParse(location, url.href))
        throw new RegistryFailure('answer', 'it redirects to what is no address')
      const to = new URL(location, url)
      if (to.protocol !== 'https:' && (to.protocol !== 'http:' || first.protocol !== 'http:'))
        throw new RegistryFailure('answer', 'it redirects to an unencrypted connection')
      url = to
    }
    throw new RegistryFailure('answer', `it redirects more than ${maxRedirects} times`)
  }

  async #get(
    url: URL,
    watch: PaceWatch,
    headers: Readonly<Record<string, string>>,
    {
      use = 'registry',
      method
    }: {
      readonly use?: 'registry' | 'token service of a registry'
      readonly method?: Question['method']
    } = {}
  ): Promise<IncomingMessage> {
    watch.asked()
    const addresses = await this.#resolve(hostOf(url), use, watch)
    return await openBound({
      url,
      ...(method !== undefined && { method }),
      addresses: addresses.map(address => ({ address, family: isIP(address) })),
      headers: { 'user-agent': 'docker/busbar', 'accept-encoding': 'identity', ...headers },
      signal: watch.signal
    })
  }

  async #resolve(
    host: string,
    use: 'registry' | 'token service of a registry',
    { signal }: PaceWatch
  ): Promise<readonly string[]> {
    const found = await bounded(async () => await resolveHost(host, this.parts.rules, use), {
      ms: nameServerMs,
      signal,
      what: 'the name server'
    })
    return found.map(({ address }) => address)
  }

  async #authorize(header: string, watch: PaceWatch): Promise<void> {
    const { auth } = this.parts
    const basic =
      auth === undefined
        ? undefined
        : `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`
    const challenge = readChallenge(header)
    if (challenge.kind === 'basic') {
      // The same account again, or none: the answer stands.
      if (basic === undefined || basic === this.#authorization)
        throw new RegistryFailure('credentials', 'it answers 401 Unauthorized')
      this.#authorization = basic
      return
    }
    const { url } = challenge
    if (
      url.protocol !== 'https:' &&
      (this.#scheme === 'https' || (basic !== undefined && !isLocal(hostOf(url))))
    )
      throw new RegistryFailure('answer', 'the connection to its token service is not encrypted')
    const isElsewhere = url.host !== new URL(`${this.#scheme}://${this.location.host}`).host
    // Taken back only when it went well.
    if (isElsewhere) this.#tokenServicesAsked++
    const answer = await this.#get(url, watch, basic === undefined ? {} : { authorization: basic }, {
      use: 'token service of a registry'
    })
    if (answer.statusCode !== 200) throw await this.#failure(answer, 'token service', { path: '', watch })
    this.#authorization = `Bearer ${readToken(await readWhole(answer, maxTokenBytes, watch))}`
    this.#hasTokenOfAccount = basic !== undefined
    if (isElsewhere) this.#tokenServicesAsked--
  }

  async #failure(
    answer: IncomingMessage,
    by: BadAnswer['by'],
    { path, watch }: Question
  ): Promise<RegistryFailure> {
    const { headers, statusCode = 0 } = answer
    // A proxy before a registry may send more than is read.
    const body = await readWhole(answer, maxErrorBytes, watch).catch(() => Buffer.from('?'))
    watch.signal.throwIfAborted()
    return answerFailure({
      status: statusCode,
      codes: errorCodes(body.toString(), headers['docker-distribution-api-version'] !== undefined),
      by,
      asked: path.startsWith('blobs/') ? 'blob' : 'manifest',
      isKnownAccount: this.#hasTokenOfAccount && by === 'registry'
    })
  }
}

const isLocal = (host: string): boolean =>
  host === 'localhost' || (isIP(host) === 4 && host.startsWith('127.'))

async function readWhole(answer: IncomingMessage, maxBytes: number, watch: PaceWatch): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of watch.count(answer)) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RegistryFailure('answer', `it answers with more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
