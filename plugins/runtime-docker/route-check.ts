import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { contains, rangeOf } from './subnet.js'

interface Endpoint {
  readonly network: string
  readonly address: string
  readonly prefix: number
}

/** Any but 0: nothing is sent. */
const anyPort = 9

/**
 * Why what this machine sends to a container does not go to the container's network; null when it does. The kernel
 * itself is asked, with all its tables and rules: a socket that is connected by it has the address from which it
 * would send, and that of a bridge, or of a guest in the network, is one of the network's own.
 */
export async function routeConflictOf({ network, address, prefix }: Endpoint): Promise<string | null> {
  const range = rangeOf(address, prefix)
  if (range === undefined) return null
  const look = `"ip route get ${address}" shows it`
  const from = await sourceFor(address)
  if ('code' in from)
    return `this machine has a route that refuses what is for ${address}, in the network ${network} (${from.code}; ${look})`
  const source = rangeOf(from.address, 32)
  return source !== undefined && contains(range, source)
    ? null
    : `this machine sends what is for ${address} from its address ${from.address} and not into the network ${network}: a route covers the range of the network (${look})`
}

async function sourceFor(address: string): Promise<{ readonly address: string } | { readonly code: string }> {
  const socket = createSocket('udp4')
  try {
    socket.connect(anyPort, address)
    await once(socket, 'connect')
    return { address: socket.address().address }
  } catch (error) {
    return { code: (error as NodeJS.ErrnoException).code ?? String(error) }
  } finally {
    socket.close()
  }
}
