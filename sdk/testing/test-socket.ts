import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { TestClient } from './test-client.js'

export interface Frame {
  readonly channel: string
  readonly event: string
  readonly data: any
}

/** A client on `/api/ws`, or on a socket of a plugin whose frames are JSON too (`F`), that remembers every frame. */
export class TestSocket<F = Frame> {
  readonly frames: F[] = []
  readonly #socket: WebSocket
  readonly #waiting = new Set<() => void>()
  closeCode: number | undefined

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()) as F)
      this.#wake()
    })
    socket.on('close', code => {
      this.closeCode = code
      this.#wake()
    })
    socket.on('error', () => {})
  }

  /** Rejects with the status (`Unexpected server response: 401`) when the upgrade is refused. */
  static async open<F = Frame>(client: TestClient, path = '/api/ws'): Promise<TestSocket<F>> {
    const socket = new WebSocket(client.url.replace('http', 'ws') + path, { headers: client.credential })
    const opened = new TestSocket<F>(socket)
    await once(socket, 'open')
    return opened
  }

  send(frame: unknown): void {
    this.#socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }
  subscribe(channel: string): void {
    this.send({ action: 'subscribe', channel })
  }
  unsubscribe(channel: string): void {
    this.send({ action: 'unsubscribe', channel })
  }

  /** The first frame, already here or still to come, that `matches`; rejects after `timeoutMs`. */
  async next(matches: (frame: F) => boolean, timeoutMs = 5_000): Promise<F> {
    const until = Date.now() + timeoutMs
    for (;;) {
      const found = this.frames.find(matches)
      if (found !== undefined) return found
      const left = until - Date.now()
      if (left <= 0)
        throw new Error(
          `no such frame within ${timeoutMs} ms; there were: ${JSON.stringify(this.frames).slice(0, 2000)}`
        )
      await this.#change(left)
    }
  }

  async closed(timeoutMs = 5_000): Promise<number> {
    const until = Date.now() + timeoutMs
    while (this.closeCode === undefined) {
      if (Date.now() > until) throw new Error(`the socket is still open after ${timeoutMs} ms`)
      await this.#change(until - Date.now())
    }
    return this.closeCode
  }

  async close(): Promise<void> {
    if (this.#socket.readyState === WebSocket.CLOSED) return
    this.#socket.close()
    await once(this.#socket, 'close')
  }

  async #change(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, Math.max(1, ms))
      this.#waiting.add(done)
    })
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done()
  }
}
