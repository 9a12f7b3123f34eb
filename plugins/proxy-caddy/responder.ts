import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Place } from './dns/zone.js'

/** A server of ours that Caddy asks. */
export interface Responder extends Place {
  close(): Promise<void>
}

/** `port`: taken where it is free, any other else. 0: any. */
export async function openResponder(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number }
): Promise<Responder> {
  server.on('clientError', (_error, socket) => socket.destroy())
  const listen = async (at: number): Promise<void> =>
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port: at, exclusive: true }, () => {
        server.off('error', reject)
        resolve()
      })
    })
  await listen(port).catch(async error => {
    if (port === 0) throw error
    await listen(0)
  })
  server.on('error', () => {})
  return {
    host,
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    }
  }
}
