import { type Duplex, Readable } from 'node:stream'
import type { ContainerProgram, ProgramOptions } from 'busbar/api/containers'
import { bounded } from 'busbar/sdk'
import type { EngineClient } from './engine-client.js'
import { problems } from './problems.js'
import { inspectExec, startHijacked } from './terminal/hijacked-exec.js'

const headerLength = 8
const keptErrors = 4096
/** Of the line with the process id, and what an engine may say before it. */
const longestHead = 256
const killMs = 10_000

/**
 * An engine has no way of ending what it runs in a container, so the program says which process it is. It leads a session of its own,
 * and with it a process group, in which everything is that it starts.
 */
const announced = ['sh', '-c', 'echo "$$" >&2; exec "$@"', 'sh'] as const
const killGroup = ['sh', '-c', 'kill -KILL -- "-$1" 2>/dev/null || kill -KILL "$1"', 'sh'] as const

/** See `ContainerRuntime.openProgram`. */
export async function openProgram(
  engine: EngineClient,
  containerId: string,
  command: readonly string[],
  { user, env, signal }: ProgramOptions
): Promise<ContainerProgram> {
  const start = async (wanted: readonly string[]) =>
    await startHijacked(engine, { containerId, command: wanted, user, env, hasTerminal: false, signal })
  const { id, stream } = await start([...announced, ...command])
  const streams = new ProgramStreams(stream)
  const kill = async (): Promise<void> => {
    const pid = streams.processId
    if (pid === undefined || pid === '') return
    const killer = await startHijacked(engine, {
      containerId,
      command: [...killGroup, pid],
      user,
      hasTerminal: false,
      signal: new AbortController().signal
    })
    killer.stream.resume()
    killer.stream.end()
  }
  const abort = (): void => {
    bounded(kill, { ms: killMs, what: 'the end of a program in a container' })
      .catch(() => {})
      .finally(() => {
        stream.destroy()
      })
    streams.output.destroy(reasonOf(signal))
  }
  signal.addEventListener('abort', abort, { once: true })
  streams.output.once('close', () => {
    // Who does not read on has given the program up.
    if (!streams.output.readableEnded && !signal.aborted) void kill().catch(() => {})
  })
  const ended = (async () => {
    try {
      await streams.over
      signal.throwIfAborted()
      const { ExitCode: exitCode } = await inspectExec(engine, id)
      if (exitCode === null) throw problems.execCut({ container: containerId })
      return { exitCode, errors: streams.errors }
    } finally {
      signal.removeEventListener('abort', abort)
      stream.destroy()
    }
  })()
  // Who reads the output alone sees it fail there.
  ended.catch(() => {})
  return { input: stream, output: streams.output, ended }
}

const reasonOf = ({ reason }: AbortSignal): Error =>
  reason instanceof Error ? reason : new Error('the program was ended')

/** Takes the frames of an engine apart, no faster than the output is read. */
class ProgramStreams {
  readonly output: Readable
  /** Resolves when everything has been read, also where nobody reads any more. */
  readonly over: Promise<void>
  processId: string | undefined
  #head = ''
  #errors = Buffer.alloc(0)

  constructor(source: Duplex) {
    let settle = (): void => {}
    this.over = new Promise(resolve => {
      settle = resolve
    })
    this.output = Readable.from(this.#bytes(source), { objectMode: false })
    this.output.once('close', settle)
    this.output.on('error', () => {})
    // Which process it is comes first, and is needed also where nobody reads yet.
    this.output.read(0)
  }

  get errors(): string {
    return this.#errors.toString('utf8').trim()
  }

  async *#bytes(source: Duplex): AsyncGenerator<Buffer> {
    let header = Buffer.alloc(0)
    let isError = false
    let left = 0
    for await (const chunk of source as AsyncIterable<Buffer>) {
      let at = 0
      while (at < chunk.length) {
        if (left === 0) {
          const piece = chunk.subarray(at, at + headerLength - header.length)
          header = Buffer.concat([header, piece])
          at += piece.length
          if (header.length < headerLength) break
          isError = header[0] === 2
          left = header.readUInt32BE(4)
          header = Buffer.alloc(0)
          continue
        }
        const piece = chunk.subarray(at, at + left)
        at += piece.length
        left -= piece.length
        if (isError) this.#keep(piece)
        else yield piece
      }
    }
    if (left > 0) throw new Error('the connection to a program in a container broke')
  }

  #keep(piece: Buffer): void {
    let rest = piece
    if (this.processId === undefined) {
      this.#head += piece.toString('latin1')
      const end = this.#head.indexOf('\n')
      if (end < 0 && this.#head.length < longestHead) return
      this.processId = /^\d+$/.exec(this.#head.slice(0, Math.max(end, 0)))?.[0] ?? ''
      rest = Buffer.from(this.#head.slice(end + 1), 'latin1')
    }
    this.#errors = Buffer.concat([this.#errors, rest]).subarray(-keptErrors)
  }
}
