import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'

const upload = Buffer.alloc(500_000, 'x')
const pauseMs = 20
const echoLimitMs = 10_000

interface ProxiedReport {
  readonly uploads: number
  readonly failedUploads: number
  readonly sockets: number
  readonly brokenSockets: number
}

/** People who send files through a proxy all the time, and others who keep a WebSocket open for all of it. */
export class ProxiedVisitors {
  #isOver = false
  #uploads = 0
  #failed = 0
  readonly #agent = new Agent({ keepAlive: true })
  readonly #runs: ReadonlyArray<Promise<void>>

  private constructor(
    private readonly port: number,
    private readonly hostname: string,
    private readonly sockets: readonly WebSocket[],
    senders: number
  ) {
    this.#runs = Array.from({ length: senders }, async () => await this.#send())
  }

  static async come(
    port: number,
    hostname: string,
    { senders, sockets }: { readonly senders: number; readonly sockets: number }
  ): Promise<ProxiedVisitors> {
    const open = await Promise.all(
      Array.from({ length: sockets }, async () => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: hostname } })
        socket.on('error', () => {})
        await once(socket, 'open')
        return socket
      })
    )
    return new ProxiedVisitors(port, hostname, open, senders)
  }

  async leave(): Promise<ProxiedReport> {
    this.#isOver = true
    await Promise.all(this.#runs)
    this.#agent.destroy()
    const echoed = await Promise.all(this.sockets.map(isOpen))
    for (const socket of this.sockets) socket.terminate()
    return {
      uploads: this.#uploads,
      failedUploads: this.#failed,
      sockets: echoed.length,
      brokenSockets: echoed.filter(isThere => !isThere).length
    }
  }

  async #send(): Promise<void> {
    while (!this.#isOver) {
      this.#uploads++
      const text = await this.#post().catch(() => '')
      if (!text.endsWith(` ${upload.length}`)) this.#failed++
      await sleep(pauseMs)
    }
  }

  async #post(): Promise<string> {
    return await new Promise<string>((resolve, reject) => {
      const outgoing = request(
        {
          ...{ host: '127.0.0.1', port: this.port, method: 'POST', agent: this.#agent },
          headers: { Host: this.hostname }
        },
        answer => {
          let text = ''
          answer.on('data', chunk => {
            text += chunk
          })
          answer.on('error', reject)
          answer.on('end', () => resolve(answer.statusCode === 200 ? text : ''))
        }
      )
      outgoing.on('error', reject)
      outgoing.end(upload)
    })
  }
}

/** Whether it still echoes. */
async function isOpen(socket: WebSocket): Promise<boolean> {
  if (socket.readyState !== WebSocket.OPEN) return false
  socket.send('still here')
  return await Promise.race([
    once(socket, 'message').then(
      () => true,
      () => false
    ),
    sleep(echoLimitMs, false)
  ])
}
