import { type Instance, MisconfiguredError } from 'busbar/sdk'

/** Hosts by which a browser on this machine may ask for the platform, or which are no host to ask for. */
const localHosts = ['localhost', '127.0.0.1', '::1', '0.0.0.0', '::']
/** What a slug of 63 characters and its dot leave of the 253 that a name may have. */
const longestDomain = 253 - 64

type Platform = Pick<Instance, 'host' | 'publicUrl'> & {
  /** By which a proxy serves the platform. */
  readonly dashboard?: string | undefined
}

/** True for `*.apps.example.com`: every application has a host of its own. */
export const isPattern = (host: string): boolean => host.startsWith('*.')

/** The host of an application by the pattern; slugs are labels, unique, and never change. */
export const ownHostOf = (pattern: string, slug: string): string => slug + pattern.slice(1)

/** Whether a domain, or the wildcard that it is, would have a host of direct addresses. */
export const isOwnHost = (host: string, domain: string): boolean =>
  domain === host ||
  (isPattern(host) ? domain.endsWith(host.slice(1)) : domain === `*.${host.split('.').slice(1).join('.')}`)

/**
 * Checks BUSBAR_DIRECT_HOST, in lower case and without brackets; throws with the remedy. Cookies ignore ports: an
 * application must not have the platform's host name, nor the platform one to which applications can set cookies.
 */
export function checkHost(host: string, bind: string | undefined, platform: Platform): void {
  if (isPattern(host)) {
    checkPattern(host, bind, platform)
    return
  }
  if (host.includes('*'))
    throw new MisconfiguredError(
      `BUSBAR_DIRECT_HOST is "${host}": a star stands for the slug of an application, once and as the whole first label, like *.apps.example.com`
    )
  if (!/^[a-z0-9.:-]+$/.test(host))
    throw new MisconfiguredError(
      `BUSBAR_DIRECT_HOST is "${host}": give a host name or an address without a port, like 127.0.0.2, or a pattern, like *.apps.example.com`
    )
  if (platformHosts(platform).includes(host)) {
    throw new MisconfiguredError(
      `BUSBAR_DIRECT_HOST is "${host}", by which a browser asks for the platform: cookies ignore ports, so an application there would be sent the platform's; give another address of this machine, like 127.0.0.2, or a name of its own, and set BUSBAR_DIRECT_BIND to what to listen on`
    )
  }
}

function checkPattern(pattern: string, bind: string | undefined, platform: Platform): void {
  const domain = pattern.slice(2)
  if (!isDomain(domain))
    throw new MisconfiguredError(
      `BUSBAR_DIRECT_HOST is "${pattern}": after the star comes the name of a domain without a port, of at most ${longestDomain} characters, like *.apps.example.com`
    )
  if (bind === undefined)
    throw new MisconfiguredError(
      `BUSBAR_DIRECT_HOST is "${pattern}", which is no address to listen on: set BUSBAR_DIRECT_BIND to one, like 0.0.0.0`
    )
  const taken = platformHosts(platform).find(host => receivesCookiesOf(domain, host))
  if (taken !== undefined)
    throw new MisconfiguredError(
      `BUSBAR_DIRECT_HOST is "${pattern}", and a browser asks for the platform as "${taken}": an application could have that name, or set cookies for it; give a domain that the platform is not in, like *.apps.example.com`
    )
}

/**
 * Whether `host` is sent cookies that are set for all of `domain`. None can be set for a name of one label, such as
 * `localhost`.
 */
const receivesCookiesOf = (domain: string, host: string): boolean =>
  host.endsWith(`.${domain}`) || (host === domain && domain.includes('.'))

/** Not an address: one whose last label is a number would be read as such. */
function isDomain(name: string): boolean {
  const labels = name.split('.')
  return (
    name.length <= longestDomain &&
    labels.every(label => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label)) &&
    !/^(\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '')
  )
}

function platformHosts({ host, publicUrl, dashboard = '' }: Platform): string[] {
  const named = [host, publicUrl === undefined ? '' : new URL(publicUrl).hostname, dashboard]
  return [...localHosts, ...named.map(bareHost)].filter(name => name !== '')
}

/** Lower case, and an IPv6 address without its brackets. */
export const bareHost = (host: string): string => host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
