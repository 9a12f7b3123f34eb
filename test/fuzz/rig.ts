import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Container, startContainer } from './container.js'
import type { Conversation } from './requests.js'

export type Question = 'usage' | 'stop'
export interface Usage {
  readonly kind: 'usage'
  readonly heapMb: number
  readonly handles: Readonly<Record<string, number>>
}
interface Ready {
  readonly kind: 'ready'
  readonly platform: number
  readonly address: { readonly host: string; readonly port: number }
  readonly credential: string
}
export type Report = Ready | Usage | { readonly kind: 'fault'; readonly what: string }

/** A connection that the client has closed must have been closed by then. */
const closeLimitMs = 4_000
const silenceMs = 25
const startLimitMs = 90_000
const reportLimitMs = 10_000

/** A platform under fuzz and the container behind one of its addresses. */
export class Rig {
  conversations = 0
  readonly statuses = new Map<string, number>()
  #faults: string[] = []
  #waiting: Array<(report: Report) => void> = []

  private constructor(
    readonly container: Container,
    readonly child: ChildProcess
  ) {
    child.on('message', (report: Report) => {
      if (report.kind === 'fault') this.#faults.push(report.what)
      else this.#waiting.shift()?.(report)
    })
    child.on('exit', (code, signal) => {
      this.#faults.push(`the process ended with ${String(code ?? signal)}`)
    })
  }

  ready: Ready | undefined

  static async start(): Promise<Rig> {
    const container = await startContainer()
    const file = fileURLToPath(new URL('platform-process.ts', import.meta.url))
    const child = fork(file, [String(container.port)], {
      execArgv: [
        '--expose-gc',
        `--import=${new URL('../../scripts/test-loader.mjs', import.meta.url).href}`,
        '--conditions=busbar-source'
      ]
    })
    const rig = new Rig(container, child)
    const ready = await rig.#report(startLimitMs)
    if (ready.kind !== 'ready') throw new Error('the platform does not say where it listens')
    rig.ready = ready
    return rig
  }

  async close(): Promise<void> {
    if (this.child.exitCode === null && this.child.connected) {
      const ended = new Promise(resolve => this.child.once('exit', resolve))
      this.child.send('stop' satisfies Question)
      await Promise.race([
        ended,
        sleep(30_000, undefined, { ref: false }).then(() => this.child.kill('SIGKILL'))
      ])
    }
    await this.container.close()
  }

  async usage(): Promise<Usage> {
    this.child.send('usage' satisfies Question)
    const usage = await this.#report(reportLimitMs)
    if (usage.kind !== 'usage') throw new Error('the platform says something else')
    return usage
  }

  async #report(limitMs: number): Promise<Report> {
    const report = new Promise<Report>(resolve => {
      this.#waiting.push(resolve)
    })
    const late = sleep(limitMs, undefined, { ref: false }).then(() => {
      throw new Error(`the platform says nothing for ${limitMs} ms; ${this.#faults.join('; ')}`)
    })
    return await Promise.race([report, late])
  }

  /** Sends all of them at once. Throws what is wrong with how they were taken, or with how the platform is after. */
  async converse(conversations: readonly Conversation[]): Promise<void> {
    const faults = (
      await Promise.all(conversations.map(async conversation => await this.#send(conversation)))
    ).filter(fault => fault !== null)
    faults.push(...(await this.#checkUp()), ...this.#faults.splice(0), ...this.container.takeFaults())
    if (faults.length > 0) throw new Error(faults.join('\n'))
  }

  /** A well-formed request on a connection of its own is answered, by the platform and by the container. */
  async #checkUp(): Promise<string[]> {
    const asked = [
      ['platform', '/healthz'],
      ['address', '/answer/0']
    ] as const
    const answers = await Promise.all(
      asked.map(async ([surface, path]) => {
        const { said } = await this.#speak(
          { surface, pieces: [`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`], end: 'end' },
          closeLimitMs
        )
        return said.startsWith('HTTP/1.1 200 ')
          ? []
          : [`after it, ${path} is answered with ${JSON.stringify(said.slice(0, 200))}`]
      })
    )
    return answers.flat()
  }

  async #send(conversation: Conversation): Promise<string | null> {
    this.conversations += 1
    const { said, isClosed } = await this.#speak(conversation, silenceMs)
    for (const [, status = ''] of said.matchAll(/(?:^|\n)HTTP\/1\.1 (\d{3}) /g)) {
      const key = `${conversation.surface} ${status}`
      this.statuses.set(key, (this.statuses.get(key) ?? 0) + 1)
      if (conversation.surface === 'platform' && status === '500')
        return `the platform answers 500: ${said.slice(0, 300)}`
    }
    return isClosed
      ? null
      : `${JSON.stringify(conversation.pieces.join('')).slice(0, 1500)}\n  the connection is open ${closeLimitMs} ms after the client has closed it; it said ${JSON.stringify(said.slice(0, 200))}`
  }

  async #speak(
    { surface, pieces, end }: Conversation,
    quietMs: number
  ): Promise<{ readonly said: string; readonly isClosed: boolean }> {
    const { platform = 0, address = { host: '', port: 0 } } = this.ready ?? {}
    const socket =
      surface === 'platform' ? connect(platform, '127.0.0.1') : connect(address.port, address.host)
    let said = ''
    socket.on('error', () => {})
    const closed = new Promise<boolean>(resolve => {
      socket.once('close', () => resolve(true))
    })
    const quiet = new Promise<void>(resolve => {
      socket.setTimeout(quietMs, resolve)
    })
    socket.on('data', chunk => {
      said += chunk.toString('latin1')
    })
    for (const piece of pieces) {
      if (socket.destroyed) break
      socket.write(piece, 'latin1')
      if (piece !== pieces.at(-1)) await sleep(1)
    }
    if (end === 'reset') {
      if (socket.connecting) await Promise.race([once(socket, 'connect').catch(() => {}), closed])
      // What it leaves behind at the other end is counted when all is over.
      socket.resetAndDestroy()
      await Promise.race([closed, quiet])
      socket.destroy()
      return { said, isClosed: true }
    }
    const isOver = await Promise.race([closed, quiet.then(() => false)])
    if (isOver) return { said, isClosed: true }
    socket.setTimeout(0)
    socket.end()
    const late = new AbortController()
    const isClosed = await Promise.race([
      closed,
      sleep(closeLimitMs, false, { signal: late.signal }).catch(() => false)
    ])
    late.abort()
    socket.destroy()
    return { said, isClosed }
  }
}
