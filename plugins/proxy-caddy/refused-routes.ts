import type { ProxyRoute } from 'busbar/api/domains'

/** Why Caddy does not take a configuration with these routes as they are; null where it takes it. */
type Trial = (routes: readonly ProxyRoute[]) => Promise<string | null>

/** Finds those that Caddy refuses, of `suspects` that it refuses together: by halves, so that one of a thousand takes twenty trials. */
export async function refusedRoutes(
  suspects: readonly ProxyRoute[],
  trial: Trial
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>()
  const search = async (routes: readonly ProxyRoute[]): Promise<void> => {
    const reason = routes.length === 0 ? null : await trial(routes)
    if (reason === null) return
    const [only, ...others] = routes
    if (only !== undefined && others.length === 0) {
      refused.set(only.id, reason)
      return
    }
    const half = Math.ceil(routes.length / 2)
    await search(routes.slice(0, half))
    await search(routes.slice(half))
  }
  await search(suspects)
  return refused
}

/** With handlers that are to be looked at. Nothing of it is reached by anybody. */
export const sampleRoute = (handlers: readonly object[]): ProxyRoute => ({
  id: 'sample',
  hostname: 'sample.busbar.invalid',
  path: '/',
  applicationId: 'sample',
  containerPort: null,
  stripPath: false,
  internalPath: '',
  forceHttps: false,
  tls: { mode: 'off' },
  features: [],
  handlers
})
