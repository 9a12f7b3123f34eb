import type { IncomingHttpHeaders } from 'node:http'
import type { Instance } from 'busbar/sdk'

/**
 * What making the first user takes. The first user owns the platform, so it has to be made from this machine or
 * with a code from the platform's log.
 */
export type SetupPolicy =
  | { readonly kind: 'open' }
  /** Only through this machine's own names: a page of another site that has its name resolve to loopback shows its own. */
  | { readonly kind: 'local' }
  /** `given`: the code of SETUP_CODE; without it one is made at each start. */
  | { readonly kind: 'code'; readonly given: string | undefined }

const loopbackName = /^(?:localhost|[a-z0-9-]{1,63}\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'] as const

/** `given`: SETUP_CODE. */
export function setupPolicyOf(
  given: string | undefined,
  instance: Pick<Instance, 'loopbackOnly' | 'publicUrl' | 'behindProxy'>
): SetupPolicy {
  if (given === 'off') return { kind: 'open' }
  return given === undefined && instance.loopbackOnly && !isPublished(instance)
    ? { kind: 'local' }
    : { kind: 'code', given }
}

/** A proxy in front opens to the network what itself listens on loopback. */
const isPublished = ({ publicUrl, behindProxy }: Pick<Instance, 'publicUrl' | 'behindProxy'>): boolean =>
  behindProxy || (publicUrl !== undefined && !loopbackName.test(new URL(publicUrl).hostname))

/** Whether a request was sent to this machine by one of its own names, and not through a proxy. */
export function isLocalRequest(headers: IncomingHttpHeaders): boolean {
  const name = (headers.host ?? '').toLowerCase().replace(/:\d{1,5}$/, '')
  return loopbackName.test(name) && proxyHeaders.every(header => headers[header] === undefined)
}
