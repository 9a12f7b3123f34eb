import { once } from 'node:events'
import type { ContainerTerminal, TerminalOptions, TerminalSize } from 'busbar/api/containers'
import type { EngineClient } from '../engine-client.js'
import { type HijackedExec, inspectExec, startHijacked } from './hijacked-exec.js'
import { Supervisor } from './supervisor.js'
import { markName } from './supervisor-script.js'

/** See `ContainerRuntime.openTerminal`. */
export async function openTerminal(
  engine: EngineClient,
  containerId: string,
  command: readonly string[],
  { terminalId, size, env = {}, signal }: TerminalOptions
): Promise<ContainerTerminal> {
  // First, so that nothing is ever there that nobody could end.
  const supervisor = await Supervisor.start(engine, containerId, terminalId, signal)
  try {
    const exec = await startHijacked(engine, {
      containerId,
      command,
      env: { TERM: 'xterm-256color', ...env, [markName]: terminalId },
      hasTerminal: true,
      signal
    })
    const terminal = new ExecTerminal({ engine, containerId, terminalId, supervisor, exec })
    await terminal.resize(size)
    return terminal
  } catch (error) {
    // It kills what has been started, also where that is not known here.
    supervisor.close()
    throw error
  }
}

/** See `ContainerRuntime.endTerminal`. */
export async function endTerminal(
  engine: EngineClient,
  containerId: string,
  terminalId: string
): Promise<void> {
  const supervisor = await Supervisor.start(engine, containerId, terminalId, new AbortController().signal)
  try {
    await supervisor.endTerminal()
  } finally {
    supervisor.close()
  }
}

interface ExecTerminalParts {
  readonly engine: EngineClient
  readonly containerId: string
  readonly terminalId: string
  readonly supervisor: Supervisor
  readonly exec: HijackedExec
}

class ExecTerminal implements ContainerTerminal {
  #wanted: TerminalSize | undefined
  #resizing: Promise<void> | undefined
  #ending: Promise<void> | undefined
  readonly #closed = new AbortController()

  constructor(private readonly parts: ExecTerminalParts) {
    parts.exec.stream.once('close', () => this.#closed.abort())
  }

  get output(): AsyncIterable<Buffer> {
    return this.#read()
  }

  async exitCode(): Promise<number | null> {
    const { engine, exec } = this.parts
    return await inspectExec(engine, exec.id).then(
      ({ ExitCode: code }) => code,
      () => null
    )
  }

  async write(data: Buffer): Promise<void> {
    const { stream } = this.parts.exec
    if (!stream.writable || stream.write(data)) return
    await once(stream, 'drain', { signal: this.#closed.signal }).catch(() => {})
  }

  async resize(size: TerminalSize): Promise<void> {
    this.#wanted = size
    this.#resizing ??= this.#resize().finally(() => {
      this.#resizing = undefined
    })
    await this.#resizing
  }

  async end(): Promise<void> {
    this.#ending ??= this.#end().catch((error: unknown) => {
      this.#ending = undefined
      throw error
    })
    await this.#ending
  }

  async *#read(): AsyncGenerator<Buffer, void> {
    try {
      for await (const piece of this.parts.exec.stream) yield piece as Buffer
    } catch {
      // An engine that goes away breaks the connection: for the reader that is an end like others.
    }
  }

  /** One call at a time, for what was wanted last. */
  async #resize(): Promise<void> {
    const { engine, exec } = this.parts
    for (let size = this.#wanted; size !== undefined; size = this.#wanted) {
      this.#wanted = undefined
      const { columns: w, rows: h } = size
      await engine
        .call('resize a terminal', async docker => {
          await docker.getExec(exec.id).resize({ h, w })
        })
        // A program that has ended has no size. Its end is told by its output.
        .catch(() => {})
    }
  }

  async #end(): Promise<void> {
    const { engine, containerId, terminalId, supervisor, exec } = this.parts
    try {
      // A program of the container may have ended it.
      await supervisor.endTerminal().catch(async () => await endTerminal(engine, containerId, terminalId))
    } finally {
      supervisor.close()
      exec.stream.destroy()
    }
  }
}
