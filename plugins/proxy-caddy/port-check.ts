import { connect, createServer } from 'node:net'

/**
 * Whether another program listens on a port. Caddy lets others share its ports, so it would not notice another Caddy, and visitors
 * would get one or the other.
 */
export async function isPortTaken(port: number, bind: string): Promise<boolean> {
  const code = await new Promise<string | undefined>(resolve => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    server.listen({ port, host: bind === '' ? undefined : bind, exclusive: true }, () =>
      server.close(() => resolve(undefined))
    )
  })
  if (code === undefined) return false
  if (code === 'EADDRINUSE') return true
  // Caddy may be allowed to what this process is not.
  return await answers(port, bind === '' ? '127.0.0.1' : bind)
}

const answers = async (port: number, host: string): Promise<boolean> =>
  await new Promise<boolean>(resolve => {
    const socket = connect({ port, host, timeout: 1000 })
    const end = (isTaken: boolean): void => {
      socket.destroy()
      resolve(isTaken)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })

/** What is wrong with the ports, as a half-sentence with what helps; null where nothing is. */
export async function portFault({
  httpPort,
  httpsPort,
  bind
}: {
  readonly httpPort: number
  readonly httpsPort: number
  readonly bind: string
}): Promise<string | null> {
  for (const [port, variable] of [
    [httpPort, 'BUSBAR_HTTP_PORT'],
    [httpsPort, 'BUSBAR_HTTPS_PORT']
  ] as const)
    if (await isPortTaken(port, bind))
      return `another program listens on port ${port}: end it, or set ${variable} to another port`
  return null
}
