import type { Agent } from 'node:http'
import type { Duplex } from 'node:stream'

/** Connections of agents that are open, those too that became the stream of a program: agents forget these. */
export class OpenConnections {
  readonly #open = new Set<Duplex>()

  /** From now on its connections are among them. */
  follow<T extends Agent>(agent: T): T {
    const create = agent.createConnection.bind(agent)
    return Object.assign(agent, {
      createConnection: (...[options, callback]: Parameters<Agent['createConnection']>) => {
        const socket = create(options, callback)
        if (socket !== null && socket !== undefined) {
          this.#open.add(socket)
          socket.once('close', () => this.#open.delete(socket))
        }
        return socket
      }
    })
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy()
  }
}
