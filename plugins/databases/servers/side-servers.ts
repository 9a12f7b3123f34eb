import { pipeline } from 'node:stream/promises'
import type { ContainerProgram, ContainerRuntime } from 'busbar/api/containers'
import { settleAll } from 'busbar/sdk'
import {
  type DatabaseEngine,
  type DumpChoice,
  type DumpGuide,
  type EngineCommand,
  restoredMark
} from '../api.js'
import type { DatabaseRow } from '../records/database-row.js'
import { type SideRole, sideName } from '../records/slug.js'
import { removeNamed } from './provisioner.js'
import type { ServerContainer } from './server-container.js'

interface SideWish {
  readonly role: SideRole
  readonly imageName: string
  readonly volume: string
  readonly isEmpty: boolean
}

export interface SideServer {
  readonly containerId: string
  readonly row: DatabaseRow
}

const keptTail = 1024
const notWhole = new Error('the dump is not whole: its end is missing')
const mostCountLines = 1_000_000
const rolesNotMade = 'roles that the dump names could not be made'
const rolesLeft = 'roles that were made for the dump could not be put right'
/** Of what SIGKILL has ended: the end of a container is that of all that runs in it. */
const killedCode = 137
const killed = 'it was killed before its end: its server has ended, or no memory was left'

export const notThere = (name: string): Error => new Error(`there is no database ${name} in it`)

/** Servers of a database beside the one that serves: in the network of builds, where no application reaches them. */
export class SideServers {
  constructor(
    private readonly runtime: ContainerRuntime,
    private readonly servers: ServerContainer
  ) {}

  /** Makes one, in the place of one that is left; resolves when it answers. */
  async open(
    row: DatabaseRow,
    { role, imageName, volume, isEmpty }: SideWish,
    signal: AbortSignal
  ): Promise<SideServer> {
    const { runtime, servers } = this
    await this.close(row, role)
    await runtime.ensureVolume(volume, { projectId: row.project_id, databaseId: row.id })
    const network = await runtime.ensureBuildNetwork(row.project_id)
    const containerId = await servers.create(runtime, row, {
      name: sideName(row, role),
      network,
      imageName,
      volume,
      isEmpty,
      isAside: true
    })
    await runtime.start(containerId)
    await servers.untilReady(runtime, row, containerId, signal)
    return { containerId, row }
  }

  /** Stops and removes it; its volume stays. */
  async close(row: DatabaseRow, role: SideRole): Promise<void> {
    await removeNamed(this.runtime, row, sideName(row, role))
  }

  /** Those that a restore has made; a drill may be under way beside it. */
  async closeAll(row: DatabaseRow): Promise<void> {
    await removeNamed(this.runtime, row, sideName(row, 'next'), sideName(row, 'source'))
  }

  /** Everything that is chosen of one server into another, which is empty. Rejects with the reason in a sentence. */
  async copy(from: SideServer, to: SideServer, choice: DumpChoice, signal: AbortSignal): Promise<void> {
    const end = new AbortController()
    const follow = (): void => end.abort(signal.reason)
    signal.addEventListener('abort', follow, { once: true })
    try {
      const dump = await this.dump(from, choice, end.signal)
      const [restored, dumped] = await Promise.allSettled([
        this.restore(to, dump.output, choice, end),
        ended(dump, 'the dump', from.row, this.servers)
      ])
      // What ends in the middle is not whole because of what wrote it.
      if (restored.status === 'rejected' && (restored.reason !== notWhole || dumped.status === 'fulfilled'))
        throw restored.reason
      if (dumped.status === 'rejected') throw dumped.reason
    } catch (error) {
      end.abort(error)
      signal.throwIfAborted()
      throw error
    } finally {
      signal.removeEventListener('abort', follow)
    }
  }

  async dump(
    { containerId, row }: SideServer,
    choice: DumpChoice,
    signal: AbortSignal
  ): Promise<ContainerProgram> {
    const { engine, database } = await this.servers.engineOf(row)
    const program = await this.#program(containerId, dumpOf(engine).dump(database, choice), signal)
    program.input.end()
    return program
  }

  /** Reads a dump into a server that is empty; rejects where not all of it was taken. */
  async restore(
    { containerId, row }: SideServer,
    content: AsyncIterable<Buffer>,
    choice: DumpChoice,
    end: AbortController
  ): Promise<void> {
    const { engine, database } = await this.servers.engineOf(row)
    const dump = dumpOf(engine)
    const guide = dump.guide?.(database, choice) ?? null
    const program = await this.#program(containerId, dump.restore(database, choice), end.signal)
    const guided = guide === null ? content : this.#guided({ containerId, row }, content, guide, end.signal)
    const feed = pipeline(guided, program.input).catch((error: unknown) => {
      // A program that ends early takes no more; how it ended says more than that.
      if (!end.signal.aborted && !isCut(error)) end.abort(error)
    })
    const [tail] = await settleAll([tailOf(program), feed])
    await ended(program, 'the restore', row, this.servers)
    if (!tail.trimEnd().endsWith(restoredMark)) throw notWhole
    const after = guide?.after() ?? null
    if (after !== null) await this.#run({ containerId, row }, after, rolesLeft, end.signal)
  }

  async *#guided(
    server: SideServer,
    content: AsyncIterable<Buffer>,
    guide: DumpGuide,
    signal: AbortSignal
  ): AsyncGenerator<Buffer> {
    for await (const piece of content) {
      const before = guide.before(piece)
      if (before !== null) await this.#run(server, before, rolesNotMade, signal)
      yield piece
    }
  }

  /** See `EngineDump.claim`. */
  async claim({ containerId, row }: SideServer, signal: AbortSignal): Promise<void> {
    const { engine, database } = await this.servers.engineOf(row)
    const command = dumpOf(engine).claim(database)
    if (command !== null)
      await this.#run({ containerId, row }, command, 'its own user could not be made', signal)
  }

  /** `failure`: what is said before the words of a program that ends with another code than 0. */
  async #run(
    { containerId, row }: SideServer,
    { argv, env }: EngineCommand,
    failure: string,
    signal: AbortSignal
  ): Promise<void> {
    const errors: string[] = []
    const exitCode = await this.runtime.exec(containerId, argv, {
      env,
      signal,
      onLine: ({ text }) => {
        if (errors.length < 5) errors.push(text)
      }
    })
    if (exitCode !== 0) throw new Error(`${failure}: ${this.servers.clean(row, errors.join('; '))}`)
  }

  /** How many rows or keys there are, by the names of databases. */
  async count({ containerId, row }: SideServer, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const { engine, database } = await this.servers.engineOf(row)
    const { argv, env } = dumpOf(engine).count(database)
    const found = new Map<string, number>()
    let name = ''
    let lines = 0
    const errors: string[] = []
    const exitCode = await this.runtime.exec(containerId, argv, {
      env,
      signal,
      onLine: ({ stream, text }) => {
        if (stream === 'stderr') {
          if (errors.length < 5) errors.push(text)
        } else if (text.startsWith('=')) {
          name = text.slice(1)
          found.set(name, 0)
        } else if (/^\d+$/.test(text) && lines < mostCountLines) {
          lines += 1
          found.set(name, (found.get(name) ?? 0) + Number(text))
        }
      }
    })
    if (exitCode !== 0)
      throw new Error(`what is in it could not be counted: ${this.servers.clean(row, errors.join('; '))}`)
    return found
  }

  /** Rejects where one of these is not in the server: what is dumped of it would be nothing, and count as whole. */
  async assertThere(
    { containerId, row }: SideServer,
    names: readonly string[],
    signal: AbortSignal
  ): Promise<void> {
    const { engine, database } = await this.servers.engineOf(row)
    const command = dumpOf(engine).databases(database)
    if (command === null) throw new Error(`a ${row.type} has no databases to choose from: name none`)
    const found = new Set<string>()
    const errors: string[] = []
    const exitCode = await this.runtime.exec(containerId, command.argv, {
      env: command.env,
      signal,
      onLine: ({ stream, text }) => {
        if (stream === 'stdout') found.add(text)
        else if (errors.length < 5) errors.push(text)
      }
    })
    if (exitCode !== 0)
      throw new Error(`its databases could not be listed: ${this.servers.clean(row, errors.join('; '))}`)
    const missing = names.find(name => !found.has(name))
    if (missing !== undefined) throw notThere(missing)
  }

  async #program(
    containerId: string,
    { argv, env }: EngineCommand,
    signal: AbortSignal
  ): Promise<ContainerProgram> {
    return await this.runtime.openProgram(containerId, argv, { env, signal })
  }
}

/** Only of engines with dumps is anything asked here. */
function dumpOf({ dump }: DatabaseEngine): NonNullable<DatabaseEngine['dump']> {
  if (dump === null) throw new Error('a database of this type is not dumped: its files are copied')
  return dump
}

/** Rejects, in a sentence, where a program has not ended well. */
export async function ended(
  { ended: over }: ContainerProgram,
  what: string,
  row?: DatabaseRow,
  servers?: ServerContainer
): Promise<void> {
  const { exitCode, errors } = await over
  if (exitCode === 0) return
  // It says nothing of its own end: what it has said is how far it was.
  if (exitCode === killedCode) throw new Error(`${what} failed: ${killed}`)
  const words = row === undefined || servers === undefined ? errors : servers.clean(row, errors)
  throw new Error(`${what} failed: ${words.slice(-1000) || `exit code ${exitCode}`}`)
}

async function tailOf({ output }: ContainerProgram): Promise<string> {
  let tail = ''
  for await (const piece of output as AsyncIterable<Buffer>)
    tail = (tail + piece.toString('latin1')).slice(-keptTail)
  return tail
}

const isCut = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  ['ERR_STREAM_PREMATURE_CLOSE', 'EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(String(error.code))
