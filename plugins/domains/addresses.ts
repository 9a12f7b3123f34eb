import type { ProxyDriver } from './api.js'
import type { DomainRow } from './domain-store.js'
import { isWildcard } from './hostname.js'
import type { AddressAnswer } from './schemas.js'

/** Where browsers find an application; a wildcard is no address. */
export function addressesOf({
  own,
  domains,
  ports: { http, https }
}: {
  readonly own: string | undefined
  readonly domains: ReadonlyArray<Pick<DomainRow, 'hostname' | 'path' | 'ssl_mode'>>
  readonly ports: ReturnType<ProxyDriver['ports']>
}): readonly AddressAnswer[] {
  const plain = http === null ? [] : [urlOf('http', http)]
  const secure = https === null ? [] : [urlOf('https', https)]
  return [
    ...(own === undefined ? [] : plain.map(url => ({ url: url(own, '/'), hostname: own, own: true }))),
    ...domains
      .filter(({ hostname }) => !isWildcard(hostname))
      .flatMap(({ hostname, path, ssl_mode }) =>
        (ssl_mode === 'off' ? plain : secure).map(url => ({ url: url(hostname, path), hostname, own: false }))
      )
  ]
}

const urlOf = (scheme: 'http' | 'https', port: number) => (hostname: string, path: string) =>
  `${scheme}://${hostname}${port === (scheme === 'http' ? 80 : 443) ? '' : `:${port}`}${path}`
