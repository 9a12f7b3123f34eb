import type { Socket } from 'node:net'
import pg, { type PoolClient } from 'pg'

/** What pg keeps of a connection, for the request that cancels what runs on it. */
interface Wire {
  readonly processID: number | null
  readonly secretKey: number | null
  readonly host: string
  readonly port: number
  readonly ssl: boolean | object
}
interface CancellingConnection extends NodeJS.EventEmitter {
  readonly stream: Socket
  connect(portOrPath: number | string, host?: string): void
  requestSsl(): void
  cancel(pid: number, key: number): void
}

const withinMs = 5_000

/**
 * Ends a connection without asking the server anything: its request to cancel, which needs no catalog, ends a statement, and that
 * the socket is closed ends what waits for one.
 */
export function cutByWire(client: PoolClient): void {
  const { processID, secretKey, host, port, ssl } = client as unknown as Wire
  client.connection.stream.destroy()
  if (processID === null || secretKey === null) return
  const connection = new pg.Connection({ ssl } as object) as unknown as CancellingConnection
  connection.on('error', () => {})
  connection.on(ssl ? 'sslconnect' : 'connect', () => connection.cancel(processID, secretKey))
  if (ssl) connection.on('connect', () => connection.requestSsl())
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
  else connection.connect(port, host)
  connection.stream.setTimeout(withinMs, () => connection.stream.destroy())
}
