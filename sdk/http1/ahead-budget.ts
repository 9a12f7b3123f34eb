/**
 * What waits behind other requests of its connection, of all servers of the process together. Node makes a request of all it
 * has read at once, of all connections in the same turn of the event loop, and each costs some ten microseconds and
 * kilobytes before anybody can say that it is to wait.
 */
const most = { ofClient: 1_000, inAll: 2_000 } as const

const byClient = new Map<string, number>()
let inAll = 0

/** Whether one more of a client may wait, which then counts until it is given back. Without a key only the bound of all holds. */
export function takeAhead(client: string | undefined): boolean {
  const own = client === undefined ? 0 : (byClient.get(client) ?? 0)
  if (inAll >= most.inAll || own >= most.ofClient) return false
  inAll += 1
  if (client !== undefined) byClient.set(client, own + 1)
  return true
}

export function giveBackAhead(client: string | undefined, count: number): void {
  inAll -= count
  if (client === undefined) return
  const left = (byClient.get(client) ?? 0) - count
  if (left > 0) byClient.set(client, left)
  else byClient.delete(client)
}
