import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'

/** The way to a PostgreSQL server, which can be cut and mended. */
export interface CutLine {
  /** What takes the place of the address of the server. */
  readonly url: string
  /** Ends all connections, and takes no other until `mend`. */
  cut(): void
  mend(): void
  close(): Promise<void>
}

/** `url`: of a server that listens on TCP, or on a socket in the folder that `host` names. */
export async function openCutLine(url: string): Promise<CutLine> {
  const open = new Set<Socket>()
  let isCut = false
  const server = createServer(here => {
    if (isCut) {
      here.resetAndDestroy()
      return
    }
    const there = createConnection(placeOf(new URL(url)))
    for (const [socket, other] of [
      [here, there],
      [there, here]
    ] as const) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const own = new URL(url)
  own.searchParams.delete('host')
  own.hostname = '127.0.0.1'
  own.port = String((server.address() as AddressInfo).port)
  const endAll = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    url: own.href,
    cut() {
      isCut = true
      endAll()
    },
    mend() {
      isCut = false
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      endAll()
      await closed
    }
  }
}

function placeOf(url: URL): { readonly path: string } | { readonly host: string; readonly port: number } {
  const port = Number(url.port || 5432)
  const folder = url.searchParams.get('host')
  return folder?.startsWith('/') === true
    ? { path: `${folder}/.s.PGSQL.${port}` }
    : { host: url.hostname, port }
}
