import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { type RegistryAuth, registryOf } from 'busbar/api/runtime-docker'
import { isProblem } from 'busbar/sdk'
import { hostOf, openBound, redirectStatuses } from '../network/bound-request.js'
import { isVouchedFor } from '../network/host-policy.js'
import { type HostRules, resolveHost } from '../network/host-resolution.js'
import { fullRepository } from './local-image.js'

/** Why a registry does not show what it was asked for, in words for whoever deploys. */
export class NotShown extends Error {}

const maxRedirects = 5
const maxAnswerBytes = 4 * 2 ** 20

/** Reads from one repository as the engine does, with the account of whoever pulls, under the host rules. */
export class RegistryReader {
  readonly #path: string
  readonly #host: string
  #scheme: 'https' | 'http' = 'https'
  #authorization: string | undefined

  constructor(
    image: string,
    private readonly auth: RegistryAuth | undefined,
    private readonly rules: HostRules,
    private readonly signal: AbortSignal
  ) {
    const repository = fullRepository(image)
    const registry = registryOf(repository)
    this.#path = repository.slice(repository.indexOf('/') + 1)
    this.#host = registry === 'docker.io' ? 'registry-1.docker.io' : registry
  }

  async json(what: string, accept: string): Promise<unknown> {
    return parsed(await this.open(what, accept))
  }

  /** The body has not begun: read it or destroy it. */
  async open(what: string, accept = '*/*'): Promise<IncomingMessage> {
    let answer = await this.#ask(what, accept)
    if (answer.statusCode === 401) {
      answer.destroy()
      this.#authorization = await this.#authorize(answer.headers['www-authenticate'] ?? '')
      answer = await this.#ask(what, accept)
    }
    if (answer.statusCode === 200) return answer
    answer.destroy()
    throw new NotShown(`its registry answers ${answer.statusCode} for ${what}`)
  }

  async #ask(what: string, accept: string): Promise<IncomingMessage> {
    const address = (): URL => new URL(`${this.#scheme}://${this.#host}/v2/${this.#path}/${what}`)
    try {
      return await this.#follow(address(), accept)
    } catch (error) {
      if (isProblem(error) || error instanceof NotShown || !this.#mayBePlain()) throw error
      this.signal.throwIfAborted()
      this.#scheme = 'http'
      return await this.#follow(address(), accept)
    }
  }

  /** As the engine takes it: on this machine, or where the operator has named it. No account goes over a network so. */
  #mayBePlain(): boolean {
    const host = hostOf(new URL(`http://${this.#host}`))
    const isLocal = host === 'localhost' || (isIP(host) === 4 && host.startsWith('127.'))
    return (
      this.#scheme === 'https' &&
      (isLocal || (this.auth === undefined && isVouchedFor(this.rules.hostPolicy(), host)))
    )
  }

  async #follow(first: URL, accept: string): Promise<IncomingMessage> {
    let url = first
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const answer = await this.#get(url, {
        accept,
        // Whoever is redirected to is told nothing that is for the registry.
        ...(url.origin === first.origin &&
          this.#authorization !== undefined && { authorization: this.#authorization })
      })
      const { location } = answer.headers
      if (!redirectStatuses.has(answer.statusCode) || location === undefined) return answer
      answer.destroy()
      if (!URL.canParse(location, url.href)) throw new NotShown('its registry redirects to no address')
      const to = new URL(location, url)
      if (to.protocol !== 'https:' && to.protocol !== first.protocol)
        throw new NotShown('its registry redirects to an unencrypted connection')
      url = to
    }
    throw new NotShown('its registry redirects too often')
  }

  async #get(url: URL, headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
    const addresses = await resolveHost(hostOf(url), this.rules, 'registry')
    return await openBound({
      url,
      addresses,
      headers: { 'user-agent': 'docker/busbar', 'accept-encoding': 'identity', ...headers },
      signal: this.signal
    })
  }

  async #authorize(challenge: string): Promise<string> {
    const basic =
      this.auth === undefined
        ? undefined
        : `Basic ${Buffer.from(`${this.auth.username}:${this.auth.password}`).toString('base64')}`
    const said = new Map(
      [...challenge.matchAll(/\b(realm|service|scope)="([^"]*)"/gi)].map(([, key = '', value = '']) => [
        key.toLowerCase(),
        value
      ])
    )
    const realm = said.get('realm') ?? ''
    if (!/^\s*bearer\s/i.test(challenge)) {
      if (basic === undefined) throw new NotShown('its registry asks for an account')
      return basic
    }
    if (!URL.canParse(realm)) throw new NotShown('its registry names no token service')
    const url = new URL(realm)
    if (url.protocol !== 'https:' && url.protocol !== `${this.#scheme}:`)
      throw new NotShown('its token service is not encrypted')
    for (const key of ['service', 'scope']) {
      const value = said.get(key)
      if (value !== undefined) url.searchParams.set(key, value)
    }
    const answer = await this.#get(url, basic === undefined ? {} : { authorization: basic })
    if (answer.statusCode !== 200) {
      answer.destroy()
      throw new NotShown(`its token service answers ${answer.statusCode}`)
    }
    const { token, access_token: access } = (await parsed(answer)) as Readonly<Record<string, unknown>>
    return `Bearer ${String(token ?? access)}`
  }
}

async function parsed(answer: IncomingMessage): Promise<unknown> {
  let bytes = 0
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) answer.destroy(new NotShown('its registry answers with too much'))
  })
  const said = await text(answer)
  try {
    const value: unknown = JSON.parse(said)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Told below.
  }
  throw new NotShown('its registry answers with something else')
}
