import { fingerprintOf } from './openssh-key.js'

/** A key by which a host of repositories is known. */
export interface HostKey {
  /** `host`, or `[host]:port` where the port is not 22, as `known_hosts` writes it. */
  readonly host: string
  /** Its kind, and the key in base64: `ssh-ed25519 AAAA…`. */
  readonly key: string
  readonly fingerprint: string
}

/** How a host is called in `known_hosts`. */
export const hostName = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  port === 22 ? host : `[${host}]:${port}`

export const knownHostsLine = ({ host, key }: Pick<HostKey, 'host' | 'key'>): string => `${host} ${key}\n`

/** What ssh has written of `host` into a `known_hosts` that was empty; undefined where it has not come so far. */
export function readKnownHosts(text: string, host: string): HostKey | undefined {
  for (const line of text.split('\n')) {
    const [name, kind, blob] = line.split(' ')
    if (name === host && kind !== undefined && blob !== undefined && /^[A-Za-z0-9+/=]+$/.test(blob))
      return { host, key: `${kind} ${blob}`, fingerprint: fingerprintOf(blob) }
  }
  return undefined
}
