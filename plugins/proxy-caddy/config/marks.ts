/** What is written into a configuration as `@id`, by which Caddy's admin API finds a part; Caddy itself makes nothing of it. */
export const serverName = 'busbar'

/** Whose the whole configuration is. */
export const markOf = (installation: string): string => `busbar-installation-${installation}`

export const hostId = (hostname: string): string => `busbar-host-${hostname}`

const answererPrefix = 'busbar-answerer-'

/** Which process of the installation Caddy asks. */
export const answererId = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `${answererPrefix}${host}|${port}`

export function answererIn(id: unknown): { readonly host: string; readonly port: number } | undefined {
  if (typeof id !== 'string' || !id.startsWith(answererPrefix)) return undefined
  const [host = '', port = ''] = id.slice(answererPrefix.length).split('|')
  return /^\d{1,5}$/.test(port) ? { host, port: Number(port) } : undefined
}
