import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Backoff, type Clock, type Log } from 'busbar/sdk'
import { capConnections, endStalledReaders } from 'busbar/sdk/http1'
import { isAskedFor } from './asked-host.js'
import type { BindAddress } from './bind-address.js'
import type { Exposition } from './exposition.js'

/** Who scrapes has one connection; there are few who do. */
const caps = { inAll: 64, perAddress: 16 }
/** Who is slower has a connection for no longer: there are few of them. */
const headMs = 3_000
const headCheckMs = 1_000
const readerMs = 30_000
const retry = { firstMs: 1_000, longestMs: 30_000 }

interface OpenListenerParts {
  readonly bind: BindAddress
  readonly exposition: Pick<Exposition, 'read'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Serves the figures without a credential, at an address that the operator has chosen for it, and nothing else. It knows one
 * request, and each connection has one: there is nothing to send ahead, and no body is read.
 */
export class OpenListener {
  #server: Server | undefined
  #reason: string | undefined

  constructor(private readonly parts: OpenListenerParts) {}

  /** Why it does not listen; undefined while it does, and before it has tried. */
  get reason(): string | undefined {
    return this.#reason
  }

  /** Listens until `signal` aborts, as soon as the address can be had: a process that is going may still have it. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    const { host, port } = this.parts.bind
    const backoff = new Backoff(clock, retry)
    while (!signal.aborted && this.#server === undefined) {
      try {
        this.#server = await this.#listen()
        this.#reason = undefined
        log.info({ host, port }, 'figures for Prometheus are served without a credential')
      } catch (error) {
        // In a reload the run of before has it for another moment: that is no news.
        if (!backoff.isFresh) this.#noteFailure(error)
        await backoff.pause(signal)
      }
    }
    if (signal.aborted) this.close()
  }

  close(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
    this.#server = undefined
  }

  #noteFailure(error: unknown): void {
    const { host, port } = this.parts.bind
    const isNews = this.#reason === undefined
    this.#reason = `METRICS_BIND: cannot listen on ${host} port ${port}: ${error instanceof Error ? error.message : String(error)}`
    if (isNews)
      this.parts.log.warn({ reason: this.#reason }, 'figures for Prometheus are not served; tried again')
  }

  async #listen(): Promise<Server> {
    const server = createServer({
      headersTimeout: headMs,
      requestTimeout: headMs,
      connectionsCheckingInterval: headCheckMs,
      maxHeaderSize: 8 * 1024
    })
    server.maxRequestsPerSocket = 1
    capConnections(server, caps)
    endStalledReaders(server, readerMs)
    server.on('request', (request, response) => {
      this.#answer(request, response)
    })
    return await new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.parts.bind.port, this.parts.bind.host, () => {
        server.off('error', reject)
        server.on('error', error => {
          this.parts.log.warn({ err: error }, 'the server of the figures for Prometheus')
        })
        resolve(server)
      })
    })
  }

  #answer({ method, url, headers }: IncomingMessage, response: ServerResponse): void {
    const send = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, {
        'content-type': type,
        'content-length': Buffer.byteLength(text),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        connection: 'close'
      })
      response.end(method === 'HEAD' ? undefined : text)
    }
    if (!isAskedFor(this.parts.bind.host, headers.host)) {
      send(421, 'Ask by the address of this machine, or as localhost.\n')
      return
    }
    if (url?.split('?')[0] !== '/metrics') {
      send(404, 'There is /metrics here, and nothing else.\n')
      return
    }
    if (method !== 'GET' && method !== 'HEAD') {
      send(405, 'Use GET.\n')
      return
    }
    this.parts.exposition.read().then(
      ({ text, type }) => {
        send(200, text, type)
      },
      (error: unknown) => {
        this.parts.log.error({ err: error }, 'the figures for Prometheus could not be read')
        send(500, 'The figures could not be read; the log of the platform says why.\n')
      }
    )
  }
}
