import { once } from 'node:events'
import { access, readFile } from 'node:fs/promises'
import type { EngineClient } from '../engine-client.js'
import { fileTools } from '../host/file-tool-container.js'
import { type HostTools, withHostTools } from '../host/host-tools.js'

interface FileToolsParts {
  readonly engine: EngineClient
  readonly instanceId: string
  /** Programs of the platform's own machine. */
  readonly local: HostTools | undefined
  readonly isInContainer: () => Promise<boolean>
}

/** Containers may end while they are looked at. */
const mostLooks = 5
/** A disk without room takes no further container, so one that is there is kept while it may be needed again. */
const keptMs = 60_000
/** It ends by itself soon. */
const oldMs = 120_000

interface Session {
  readonly dataRoot: string
  readonly begunAt: number
  readonly tools: Promise<HostTools>
  readonly end: () => void
  readonly ended: Promise<void>
}

/**
 * Programs that see all files of containers: of this machine where the platform is root on the engine's, else in a
 * container of the engine.
 */
export class FileTools {
  #session: Session | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(private readonly parts: FileToolsParts) {}

  async open(dataRoot: string): Promise<HostTools> {
    const { local } = this.parts
    if (local !== undefined && (await this.#isLocal(dataRoot))) return local
    const session = this.#current(dataRoot)
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#forget(session), keptMs).unref()
    // One that is gone, whoever removed it, is made anew the next time.
    const orForgotten = (error: unknown): never => {
      this.#forget(session)
      throw error
    }
    const tools = await session.tools.catch(orForgotten)
    return { run: async (...asked) => await tools.run(...asked).catch(orForgotten) }
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle)
    const session = this.#session
    if (session === undefined) return
    this.#forget(session)
    await session.ended
  }

  #current(dataRoot: string): Session {
    const found = this.#session
    if (found?.dataRoot === dataRoot && performance.now() - found.begunAt < oldMs) return found
    if (found !== undefined) this.#forget(found)
    this.#session = this.#begin(dataRoot)
    return this.#session
  }

  #begin(dataRoot: string): Session {
    const { engine, instanceId } = this.parts
    const end = new AbortController()
    let ended = Promise.resolve()
    const tools = new Promise<HostTools>((resolve, reject) => {
      const use = async (opened: HostTools): Promise<void> => {
        resolve(opened)
        if (!end.signal.aborted) await once(end.signal, 'abort')
      }
      ended = withHostTools(engine, instanceId, use, fileTools(dataRoot)).catch(reject)
    })
    return { dataRoot, begunAt: performance.now(), tools, end: () => end.abort(), ended }
  }

  #forget(session: Session): void {
    session.end()
    if (this.#session === session) this.#session = undefined
  }

  /** The engine's processes are seen here by the numbers that it tells, and its folder by root. */
  async #isLocal(dataRoot: string): Promise<boolean> {
    if (process.getuid?.() !== 0 || (await this.parts.isInContainer())) return false
    for (let looks = 0; looks < mostLooks; looks++) {
      const id = await this.#anyRunning()
      if (id === undefined)
        return await access(dataRoot).then(
          () => true,
          () => false
        )
      const pid = await this.#processOf(id)
      const group = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
      if (group.includes(id)) return true
      // One that has ended meanwhile tells nothing.
      if (pid !== 0 && (await this.#processOf(id)) === pid) return false
    }
    return false
  }

  async #anyRunning(): Promise<string | undefined> {
    const [running] = await this.parts.engine.call(
      'list containers',
      async docker => await docker.listContainers({ limit: 1, filters: { status: ['running'] } })
    )
    return running?.Id
  }

  /** 0: it does not run. */
  async #processOf(id: string): Promise<number> {
    const seen = await this.parts.engine.call(
      'inspect a container',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    return seen?.State.Pid ?? 0
  }
}
