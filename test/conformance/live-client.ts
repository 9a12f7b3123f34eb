import { once } from 'node:events'
import { until } from 'busbar/sdk/testing'
import { WebSocket } from 'ws'

/** A frame as it came, with the text that it was parsed from. */
interface HeardFrame {
  readonly channel: string
  readonly event: string
  readonly data: any
}

/** A plain WebSocket client. It knows nothing of the platform but what the contract says. */
export class LiveClient {
  readonly texts: string[] = []
  readonly frames: HeardFrame[] = []
  pings = 0
  end: { readonly code: number; readonly reason: string } | undefined

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data, isBinary) => {
      const text = String(data)
      this.texts.push(isBinary ? `binary: ${text}` : text)
      this.frames.push(JSON.parse(text) as HeardFrame)
    })
    socket.on('ping', () => {
      this.pings++
    })
    socket.on('close', (code, reason) => {
      this.end = { code, reason: String(reason) }
    })
    socket.on('error', () => {})
  }

  /** Rejects with `Unexpected server response: 401` when the upgrade is refused. */
  static async open(
    url: string,
    headers: Readonly<Record<string, string>>,
    { path = '/api/ws', autoPong = true }: { readonly path?: string; readonly autoPong?: boolean } = {}
  ): Promise<LiveClient> {
    const socket = new WebSocket(url.replace('http', 'ws') + path, {
      headers,
      autoPong,
      perMessageDeflate: true
    })
    const client = new LiveClient(socket)
    await once(socket, 'open')
    return client
  }

  /** As it is: a text, or bytes in a binary frame. */
  send(frame: string | Buffer): void {
    this.socket.send(frame)
  }
  ask(action: string, ...channels: readonly unknown[]): void {
    for (const channel of channels) this.send(JSON.stringify({ action, channel }))
  }
  subscribe(...channels: readonly string[]): void {
    this.ask('subscribe', ...channels)
  }
  unsubscribe(...channels: readonly string[]): void {
    this.ask('unsubscribe', ...channels)
  }

  on(channel: string): readonly HeardFrame[] {
    return this.frames.filter(frame => frame.channel === channel)
  }

  /** The first frame, already here or still to come, that is meant. */
  async next(isMeant: (frame: HeardFrame) => boolean, what: string, limitMs = 20_000): Promise<HeardFrame> {
    return await until(
      () => {
        if (this.end !== undefined && !this.frames.some(isMeant))
          throw new Error(`the socket was closed with ${this.end.code} before ${what}`)
        return this.frames.find(isMeant)
      },
      `${what}; there were: ${this.texts.join(' ').slice(0, 1500)}`,
      limitMs
    )
  }

  /** The refusal of a channel. */
  async refusal(channel: string): Promise<HeardFrame> {
    return await this.next(
      frame => frame.channel === channel && frame.event === 'error',
      `a refusal on ${channel}`
    )
  }

  async closed(limitMs = 20_000): Promise<{ readonly code: number; readonly reason: string }> {
    return await until(() => this.end, 'the socket is closed', limitMs)
  }

  /** Everything that was sent to it before has come: a client's ping is answered in turn. */
  async drained(): Promise<void> {
    const answered = once(this.socket, 'pong')
    this.socket.ping()
    await answered
  }

  async close(): Promise<void> {
    if (this.end === undefined) this.socket.close()
    await until(() => this.end, 'the socket is closed')
  }
}
