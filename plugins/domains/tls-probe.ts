import { connect, type DetailedPeerCertificate } from 'node:tls'

/** The certificate that a hostname is served with. */
export interface ServedLeaf {
  readonly issuer: string
  readonly notAfter: Date
  readonly covers: boolean
}

const limitMs = 5000

/** Asks for it as a browser does; undefined where none is served. */
export async function servedLeaf(
  { host, port }: { readonly host: string; readonly port: number },
  hostname: string
): Promise<ServedLeaf | undefined> {
  // A wildcard is asked for by a name below it.
  const servername = hostname.startsWith('*.') ? `busbar-check${hostname.slice(1)}` : hostname
  return await new Promise(resolve => {
    // Whoever issued it: what is served is told, not trusted.
    const socket = connect({ host, port, servername, rejectUnauthorized: false, timeout: limitMs })
    const end = (leaf: ServedLeaf | undefined): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(leaf)
    }
    const timer = setTimeout(() => end(undefined), limitMs)
    socket.once('error', () => end(undefined))
    socket.once('close', () => end(undefined))
    socket.once('secureConnect', () =>
      end(
        leafOf(
          socket.getPeerCertificate(true),
          socket.getPeerX509Certificate()?.checkHost(servername) !== undefined
        )
      )
    )
  })
}

function leafOf(certificate: DetailedPeerCertificate, covers: boolean): ServedLeaf | undefined {
  const notAfter = new Date(certificate.valid_to)
  if (Number.isNaN(notAfter.getTime())) return undefined
  const { O: organization, CN: name } = certificate.issuer
  return { issuer: [organization, name].flat().filter(Boolean).join(', ').slice(0, 300), notAfter, covers }
}
