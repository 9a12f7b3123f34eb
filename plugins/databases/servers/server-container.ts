import { connect } from 'node:net'
import { type EngineDiskReader, withFullDisk } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock, OptionalHandle, Secrets } from 'busbar/sdk'
import type { DatabaseEngine, EngineCommand, EngineDatabase } from '../api.js'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'
import type { DatabaseStore } from '../records/database-store.js'
import type { SealedCredentials } from '../records/sealed-credentials.js'
import { isCheckVolume } from '../records/slug.js'

interface ServerContainerParts {
  readonly store: Pick<DatabaseStore, 'find'>
  readonly engines: EngineChoice
  readonly sealed: SealedCredentials
  readonly secrets: Secrets
  readonly clock: Clock
  readonly disk: OptionalHandle<EngineDiskReader>
  readonly readySeconds: number
}

/** What is to be made: the serving container, or one beside it that nobody reaches. */
interface ServerWish {
  readonly name: string
  readonly network: string
  readonly imageName: string
  readonly volume: string
  /** Without what a server usually begins with: for a restore. */
  readonly isEmpty: boolean
  /** See `DatabaseEngine.container`. */
  readonly isAside?: boolean
}

const askEveryMs = 300
/** One question. */
const askMs = 15_000
/**
 * Asks for some seconds until there is an answer: that the engine starts a program takes longer than many of these need. One whose
 * `sleep` knows no parts of a second asks once.
 */
const askedAgain = [
  'sh',
  '-c',
  'end=$(($(date +%s) + 3)); until "$@" > /dev/null 2>&1; do [ "$(date +%s)" -lt "$end" ] && sleep 0.1 || exit 1; done',
  'sh'
] as const
/** Of a program that is not there, which is the shell. */
const notRun: readonly number[] = [126, 127]
const shownLines = 8
/** Where a port is all that can be asked. */
const steadyMs = 2000
/** A server that has data may have to recover before it answers. */
const recoverySeconds = 3600
export const stopGraceSeconds = 30

/** Of a server that was started and does not serve: not of an engine that is away, or a container that somebody has removed. */
export class ServerFailed extends Error {}

/** Containers with the server of a database: how they are made, and when they serve. */
export class ServerContainer {
  constructor(private readonly parts: ServerContainerParts) {}

  async engineOf(row: DatabaseRow): Promise<{ engine: DatabaseEngine; database: EngineDatabase }> {
    return {
      engine: await this.parts.engines.of(row.type),
      database: this.parts.sealed.forEngine(row)
    }
  }

  /** Creates it, and leaves it stopped; its id. Its volume is there. */
  async create(
    runtime: ContainerRuntime,
    row: DatabaseRow,
    { name, network, imageName, volume, isEmpty, isAside = false }: ServerWish
  ): Promise<string> {
    const { engine, database } = await this.engineOf(row)
    const { env, command, entrypoint, stopSignal } = engine.container(database, { isEmpty, isAside })
    const containerId = await runtime.create({
      name,
      image: imageName,
      owner: { projectId: row.project_id, databaseId: row.id },
      network,
      env,
      ...(command !== undefined && { command }),
      ...(entrypoint !== undefined && { entrypoint }),
      ...(stopSignal !== undefined && { stopSignal }),
      cpuLimit: row.cpu_limit,
      memoryLimit: row.memory_limit,
      // Their images begin as root, and give their files to the user of the server.
      caps: 'standard',
      readonlyRootfs: false,
      volumes: [{ volume, path: engine.dataPath(database) }]
    })
    await this.#keepUnlessDeleted(runtime, row, containerId, volume)
    return containerId
  }

  /** A removal that has looked for containers before this one was made would leave it. */
  async #keepUnlessDeleted(
    runtime: ContainerRuntime,
    { id, initialized_at: initializedAt }: DatabaseRow,
    containerId: string,
    volume: string
  ): Promise<void> {
    // A drill restores what may be gone long since.
    if (initializedAt === null && isCheckVolume(volume)) return
    if ((await this.parts.store.find(id)) !== undefined) return
    await runtime.remove(containerId)
    await runtime.removeVolume(volume)
    throw problems.notFound({ databaseId: id })
  }

  /** Resolves when its server has answered a query, or has had its port open for a while; rejects with why it did not, in a sentence. */
  async untilReady(
    runtime: ContainerRuntime,
    row: DatabaseRow,
    containerId: string,
    signal: AbortSignal
  ): Promise<void> {
    const { clock, readySeconds } = this.parts
    const { engine, database } = await this.engineOf(row)
    const command = engine.ready(database)
    const seconds = row.initialized_at === null ? readySeconds : Math.max(readySeconds, recoverySeconds)
    let starts = 0
    let lastStart = ''
    let open: { readonly startedAt: string; readonly at: number } | undefined
    for (const end = clock.elapsed() + seconds * 1000; ; ) {
      const state = await runtime.inspect(containerId)
      signal.throwIfAborted()
      if (state === undefined)
        throw new Error('its container was removed before its server answered: try again')
      if (state.startedAt !== lastStart) starts += 1
      lastStart = state.startedAt
      if (state.status === 'running' && (await this.#answers(runtime, row, containerId, command, signal))) {
        if (command !== null) return
        // A server that ends each time that it reads its files may have its port open before.
        const { startedAt } = state
        if (open?.startedAt !== startedAt) open = { startedAt, at: clock.elapsed() }
        else if (clock.elapsed() - open.at >= steadyMs) return
      }
      // It is started again and again, and ends each time.
      const isOver = starts > 4 || state.status === 'exited' || state.status === 'dead'
      if (isOver || clock.elapsed() >= end)
        throw new ServerFailed(
          await this.#why(
            runtime,
            row,
            containerId,
            isOver ? 'its server ends' : `its server did not answer within ${seconds} seconds`
          )
        )
      await clock.sleep(askEveryMs, signal)
    }
  }

  async #answers(
    runtime: ContainerRuntime,
    row: DatabaseRow,
    containerId: string,
    command: EngineCommand | null,
    signal: AbortSignal
  ): Promise<boolean> {
    const limit = new AbortController()
    const stop = setTimeout(() => limit.abort(), askMs)
    const follow = (): void => limit.abort()
    signal.addEventListener('abort', follow, { once: true })
    try {
      if (command === null) return await takesConnections(await runtime.dial(containerId, row.container_port))
      const { argv, env } = command
      const ask = async (asked: readonly string[]): Promise<number> =>
        await runtime.exec(containerId, asked, { env, onLine: () => {}, signal: limit.signal })
      const exitCode = await ask([...askedAgain, ...argv])
      // From an image without a shell: asked from here, once for each look.
      return exitCode === 0 || (notRun.includes(exitCode) && (await ask(argv)) === 0)
    } catch {
      signal.throwIfAborted()
      return false
    } finally {
      clearTimeout(stop)
      signal.removeEventListener('abort', follow)
    }
  }

  /** With the last of its output, without its secrets; and the disk of the engine, where that is full: few servers say so at their end. */
  async #why(
    runtime: ContainerRuntime,
    row: DatabaseRow,
    containerId: string,
    what: string
  ): Promise<string> {
    const lines = await runtime.tail(containerId, shownLines).catch(() => [])
    const said = lines.join('\n').trim()
    const words = `${what}${said === '' ? '' : `. The last of its output: ${this.clean(row, said)}`}`
    return await withFullDisk(words, this.parts.disk.get())
  }

  /** Without the credentials of the database. Where these cannot be read, that is all that is said: they may be in it. */
  clean(row: DatabaseRow, text: string): string {
    const credentials = this.#credentialsOf(row)
    if (credentials === undefined) return unreadable
    const scope = this.parts.secrets.scope()
    try {
      scope.redact(secretsOf(row, credentials))
      return scope.clean(text).slice(0, 2000)
    } finally {
      scope.release()
    }
  }

  /** What says why something failed fails itself for no key that is gone: the database would be busy for ever. */
  #credentialsOf(row: DatabaseRow): Readonly<Record<string, string>> | undefined {
    try {
      return this.parts.sealed.open(row)
    } catch {
      return undefined
    }
  }
}

const unreadable = 'its credentials cannot be decrypted: bring back the keys of the installation'

/** Names are no secrets; of variables that are somebody's own, it is not known which are. */
const secretsOf = ({ type }: DatabaseRow, credentials: Readonly<Record<string, string>>): string[] =>
  Object.entries(credentials)
    .filter(([key, value]) => (type === 'other' ? value.length >= 6 : key.includes('password')))
    .map(([, value]) => value)

const connectMs = 3000

const takesConnections = async ({ host, port }: { host: string; port: number }): Promise<boolean> =>
  await new Promise(resolve => {
    const socket = connect({ host, port, timeout: connectMs })
    const end = (isThere: boolean): void => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(false))
  })
