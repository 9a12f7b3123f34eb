import { connect as connectPlain, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import type { DockerOptions } from 'dockerode'
import { AnswerBody, type TakeBytes } from './answer-body.js'
import { type AnswerHead, readHead } from './answer-head.js'
import { ReadBytes } from './read-bytes.js'

/** All answers are read into it, one at a time: a container that is followed and writes nothing takes no memory for what it could write. */
const shared = Buffer.allocUnsafeSlow(64 * 1024)

/** Of a refusal; what is more is left out. */
const longestRefusal = 64 * 1024

/** How Node says it of its own parser, and so what is made of it. */
const cutCode = 'ERR_STREAM_PREMATURE_CLOSE'

/**
 * An answer that an engine goes on sending for as long as it likes, over a connection of its own, without what Node's HTTP makes of each
 * chunk. Nothing is read but what is asked for by `more`; what is not read waits with the engine.
 */
export class EngineAnswer {
  #body: AnswerBody | undefined
  /** What has come of a head that is not whole. */
  #begun: Buffer = Buffer.alloc(0)
  #error: unknown
  #isClosed = false
  /** Bytes that have come with the last look. */
  #came = 0
  #settle: (() => void) | undefined
  readonly #socket: Socket
  readonly #forget: () => void

  private constructor(
    options: DockerOptions,
    path: string,
    private readonly take: TakeBytes,
    private readonly onHead: (head: AnswerHead) => void,
    signal: AbortSignal
  ) {
    const onread: OnReadOpts = {
      buffer: shared,
      callback: count => {
        this.#read(count)
        return false
      }
    }
    this.#socket = connected(options, onread)
    const abort = (): void => {
      this.destroy()
    }
    signal.addEventListener('abort', abort)
    this.#forget = () => {
      signal.removeEventListener('abort', abort)
    }
    this.#socket
      .on('error', (error: unknown) => {
        this.#error ??= error
      })
      .on('close', () => {
        this.#close()
      })
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostOf(options)}\r\n\r\n`)
  }

  /**
   * Asks, and resolves with the answer to what is not refused. `take` is given its body: at once, where it lies, which is where the next
   * bytes will lie. Rejects as dockerode does.
   */
  static async open(
    options: DockerOptions,
    path: string,
    take: TakeBytes,
    signal: AbortSignal
  ): Promise<EngineAnswer> {
    signal.throwIfAborted()
    const found: { head?: AnswerHead } = {}
    const refusal: Buffer[] = []
    let length = 0
    const answer = new EngineAnswer(
      options,
      path,
      (read, start, end) => {
        if (found.head?.status === 200) take(read, start, end)
        else if (length < longestRefusal) refusal.push(Buffer.from(read.bytes.subarray(start, end)))
        length += end - start
      },
      head => {
        found.head = head
      },
      signal
    )
    try {
      while (found.head === undefined) await answer.more()
      if (found.head.status === 200) return answer
      while ((await answer.more()) > 0);
    } catch (error) {
      answer.destroy()
      throw error
    }
    throw refused(found.head.status, Buffer.concat(refusal).toString())
  }

  /** Reads what has come, or waits for it; how many bytes that were, 0 at the end. Rejects where it ends before its end. */
  async more(): Promise<number> {
    if (this.#came === 0 && this.#body?.isOver !== true && !this.#isClosed && this.#error === undefined)
      await new Promise<void>(resolve => {
        this.#settle = resolve
        this.#socket.resume()
      })
    const came = this.#came
    this.#came = 0
    if (came > 0 && this.#error === undefined) return came
    if (this.#error !== undefined) throw this.#error
    if (this.#body?.mayEnd !== true) throw cut(this.#body !== undefined)
    return 0
  }

  /** Whoever waits for more is told that it was cut. */
  destroy(): void {
    this.#socket.destroy()
  }

  #read(count: number): void {
    this.#came += count
    try {
      if (this.#body === undefined) this.#readHead(shared.subarray(0, count))
      else this.#body.read(new ReadBytes(shared, count), 0, this.take)
    } catch (error) {
      this.#error ??= error
    }
    if (this.#body?.isOver === true || this.#error !== undefined) this.destroy()
    this.#tell()
  }

  #readHead(bytes: Buffer): void {
    const begun = Buffer.concat([this.#begun, bytes])
    const head = readHead(begun)
    this.#begun = head === undefined ? begun : Buffer.alloc(0)
    if (head === undefined) return
    this.#body = new AnswerBody(head)
    this.onHead(head)
    this.#body.read(new ReadBytes(begun), head.end, this.take)
  }

  #close(): void {
    this.#isClosed = true
    this.#forget()
    this.#tell()
  }

  #tell(): void {
    const settle = this.#settle
    this.#settle = undefined
    settle?.()
  }
}

function connected(options: DockerOptions, onread: OnReadOpts): Socket {
  const { socketPath, host = '', port, protocol, ca, cert, key } = options
  if (socketPath !== undefined) return connectPlain({ path: socketPath, onread })
  const at = { host, port: Number(port), onread }
  if (protocol !== 'https') return connectPlain(at)
  return connectSecure({ ...at, ca, cert, key, ...(isIP(host) === 0 ? { servername: host } : {}) })
}

const hostOf = ({ socketPath, host = '', port }: DockerOptions): string =>
  socketPath === undefined ? `${host.includes(':') ? `[${host}]` : host}:${port ?? ''}` : 'localhost'

/** As Node says it: before the head the connection was broken, behind it the answer is not whole. */
const cut = (isBegun: boolean): Error =>
  isBegun
    ? Object.assign(new Error('aborted'), { code: cutCode })
    : Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })

/** As dockerode says it. */
function refused(statusCode: number, body: string): Error {
  return Object.assign(new Error(body), { statusCode, json: parsed(body) })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
