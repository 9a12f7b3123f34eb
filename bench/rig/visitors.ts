import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'

const pollMs = 10
const limitMs = 120_000
const pauseMs = 5
const echoLimitMs = 10_000
const limitOfPageMs = 10_000
/** What a server that stops says to its WebSockets: come back. */
const goingAway = 1001

/** Resolves with the first page that shows `version`. */
export async function untilAnswers(url: string, version: string): Promise<void> {
  const end = performance.now() + limitMs
  for (;;) {
    const text = await page(url).catch(() => '')
    if (text.includes(`${version}<`) || text.includes(`"${version}"`)) return
    if (performance.now() > end) throw new Error(`${url} does not show ${version}: ${text.slice(0, 200)}`)
    await sleep(pollMs)
  }
}

export interface VisitorReport {
  readonly requests: number
  readonly failedRequests: number
  readonly sockets: number
  readonly failedSockets: number
  readonly failures: readonly string[]
}

/** People who look at a page all the time: over kept connections, over new ones, and by WebSocket. */
export class Visitors {
  #isOver = false
  #requests = 0
  #sockets = 0
  #failedRequests = 0
  #failedSockets = 0
  readonly #failures: string[] = []
  readonly #visits: ReadonlyArray<Promise<void>>
  readonly #kept = new Agent({ keepAlive: true })

  constructor(
    private readonly url: string,
    each: number
  ) {
    this.#visits = Array.from({ length: each }, (_, index) => index).flatMap(() => [
      this.#ask(this.#kept),
      this.#ask(undefined),
      this.#talk()
    ])
  }

  async stop(): Promise<VisitorReport> {
    this.#isOver = true
    await Promise.all(this.#visits)
    this.#kept.destroy()
    return {
      requests: this.#requests,
      failedRequests: this.#failedRequests,
      sockets: this.#sockets,
      failedSockets: this.#failedSockets,
      failures: this.#failures
    }
  }

  async #ask(agent: Agent | undefined): Promise<void> {
    while (!this.#isOver) {
      this.#requests++
      await page(this.url, agent).catch((error: unknown) => {
        this.#failedRequests++
        this.#failures.push(String(error))
      })
      await sleep(pauseMs)
    }
  }

  /** Comes back when the server says that it is going away; any other end is a failure. */
  async #talk(): Promise<void> {
    while (!this.#isOver) {
      this.#sockets++
      const socket = new WebSocket(`${this.url.replace(/^http/, 'ws')}echo`)
      const closed = once(socket, 'close') as Promise<[number]>
      try {
        await this.#echo(socket, closed)
      } catch (error) {
        this.#failedSockets++
        this.#failures.push(String(error))
        socket.terminate()
      }
    }
  }

  async #echo(socket: WebSocket, closed: Promise<[number]>): Promise<void> {
    const ended = closed.then(([code]) => {
      if (code !== goingAway && !this.#isOver) throw new Error(`a WebSocket was closed with ${code}`)
    })
    await Promise.race([once(socket, 'open'), ended])
    for (let n = 0; socket.readyState === WebSocket.OPEN && !this.#isOver; n++) {
      const answered = once(socket, 'message', { signal: AbortSignal.timeout(echoLimitMs) })
      socket.send(String(n))
      await Promise.race([answered, ended])
      await sleep(pauseMs)
    }
    socket.close()
    await ended
  }
}

async function page(url: string, agent?: Agent): Promise<string> {
  return await new Promise<string>((resolve, reject) => {
    const call = request(url, { agent: agent ?? false, timeout: limitOfPageMs }, response => {
      let text = ''
      response
        .setEncoding('utf8')
        .on('data', (part: string) => {
          text += part
        })
        .on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`${url} answered ${response.statusCode ?? 0}: ${text.slice(0, 200)}`))
      })
    })
    call
      .on('error', reject)
      .on('timeout', () => {
        call.destroy(new Error(`${url} did not answer`))
      })
      .end()
  })
}
