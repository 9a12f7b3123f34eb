import type { LookupAddress } from 'node:dns'
import { isProblem, withTimeLimit } from 'busbar/sdk'
import { hostOf, openBound, redirectStatuses } from '../network/bound-request.js'
import { type HostRules, resolveHost } from '../network/host-resolution.js'
import { problems } from '../problems.js'

/** What is pulled, from the host with its port. */
interface Wanted {
  readonly image: string
  readonly registry: string
}

const answerWithinMs = 20_000
const maxRedirects = 5

/**
 * Asks `GET /v2/` as the engine does first, on the addresses that were checked, and checks where the answer leads:
 * its redirects, and the token service that it names. Nothing but the registry's own host is asked by this.
 */
export async function probeRegistry(
  wanted: Wanted,
  addresses: readonly LookupAddress[],
  rules: HostRules,
  signal: AbortSignal
): Promise<void> {
  let url = new URL(`https://${wanted.registry}/v2/`)
  let at = addresses
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const { status, headers } = await ask(url, at, wanted, signal)
    if (!redirectStatuses.has(status) || headers.location === undefined) {
      for (const realm of realmsIn(headers['www-authenticate'] ?? ''))
        await resolveHost(hostOf(realm), rules, 'token service of a registry')
      return
    }
    if (!URL.canParse(headers.location, url.href))
      throw problems.registryRedirect({ ...wanted, reason: 'it leads to no address' })
    url = new URL(headers.location, url)
    if (url.protocol !== 'https:')
      throw problems.registryRedirect({ ...wanted, reason: 'it leaves the encrypted connection' })
    at = await resolveHost(hostOf(url), rules, 'registry')
  }
  throw problems.registryRedirect({ ...wanted, reason: `there are more than ${maxRedirects} redirects` })
}

async function ask(url: URL, addresses: readonly LookupAddress[], wanted: Wanted, signal: AbortSignal) {
  try {
    const answer = await withTimeLimit(
      { signal, ms: answerWithinMs },
      async limited =>
        await openBound({
          url,
          addresses,
          headers: { 'user-agent': 'docker/busbar', accept: '*/*' },
          signal: limited,
          // The engine may know an authority that this process does not; nothing secret is sent, and nothing here is believed.
          acceptsAnyCertificate: true
        })
    )
    answer.destroy()
    return { status: answer.statusCode, headers: answer.headers }
  } catch (error) {
    signal.throwIfAborted()
    if (isProblem(error) || !(error instanceof Error)) throw error
    throw problems.registryUnanswering({
      ...wanted,
      reason: error.name === 'AbortError' ? `no answer within ${answerWithinMs / 1000} s` : error.message
    })
  }
}

/** The addresses of token services in a WWW-Authenticate, whichever of them the engine takes. A realm of Basic is a name. */
export function realmsIn(challenge: string): URL[] {
  const realms = [...challenge.matchAll(/realm\s*=\s*(?:"([^"]*)"|([^\s,"]+))/gi)].map(
    ([, quoted, plain]) => quoted ?? plain ?? ''
  )
  return realms
    .filter(realm => /^\s*https?:/i.test(realm) && URL.canParse(realm))
    .map(realm => new URL(realm))
}
