import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'
import { encode } from 'dns-packet'
import { objectAt } from './config/json.js'
import { answererId, answererIn, serverName } from './config/marks.js'

const limitMs = 500

/** Whether another process of this installation, which lives, drives the Caddy that has this configuration. */
export async function hasRival(
  config: unknown,
  own: { readonly host: string; readonly port: number }
): Promise<boolean> {
  const id = objectAt(config, 'apps', 'http', 'servers', serverName)?.['@id']
  const other = answererIn(id)
  if (other === undefined || id === answererId(own) || isIP(other.host) === 0) return false
  return await answers(other.host, other.port)
}

async function answers(host: string, port: number): Promise<boolean> {
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  try {
    return await new Promise<boolean>(resolve => {
      const timer = setTimeout(() => resolve(false), limitMs)
      const end = (isThere: boolean): void => {
        clearTimeout(timer)
        resolve(isThere)
      }
      socket.once('error', () => end(false))
      socket.once('message', () => end(true))
      // Connected, so that a port nobody listens on is an error.
      socket.connect(port, host, () =>
        socket.send(
          encode({ type: 'query', id: 1, questions: [{ type: 'SRV', name: 'alive.busbar.invalid' }] })
        )
      )
    })
  } finally {
    socket.close()
  }
}
