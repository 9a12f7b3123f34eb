import { randomInt } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Bus, type Clock, isProblem, type Log, type OptionalHandle, pause, Serial } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DatabaseStore } from '../records/database-store.js'
import { portsChanged } from '../status/status-board.js'
import type { ExternalReach } from './external-reach.js'

interface ExternalPortsParts {
  readonly store: DatabaseStore
  readonly reach: Pick<ExternalReach, 'look'>
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}

type Place = Awaited<ReturnType<ExternalReach['look']>>
type ExternalRow = Awaited<ReturnType<DatabaseStore['external']>>[number]

interface OpenPort {
  readonly server: Server
  readonly sockets: Set<Socket>
  readonly port: number
  target: ExternalRow
}

const mostConnections = 500
const lookEveryMs = 15_000
const connectMs = 10_000
/** A number that another program has is given up then: it is shown as the way to the database. A process that ends has it for a while. */
const keptMs = 60_000

/**
 * The ports by which databases are reached from outside of their projects. They lead through this process, so that to open or to
 * close one touches no container: nobody who is signed in notices.
 */
export class ExternalPorts {
  readonly #open = new Map<string, OpenPort>()
  readonly #turns = new Serial()
  /** Those that could not be opened: why, and since when, by `clock.elapsed`. */
  readonly #refused = new Map<string, { readonly reason: string; readonly since: number }>()
  /** Why none could be opened when that was asked last. */
  #nowhere: string | undefined

  constructor(private readonly parts: ExternalPortsParts) {}

  async run(signal: AbortSignal): Promise<void> {
    const { bus, clock, log } = this.parts
    const look = async (): Promise<void> => {
      await this.#turns.run(async () => {
        if (!signal.aborted) await this.#compare()
      })
    }
    const warn = (error: unknown): void => {
      log.warn({ err: error }, 'the ports of databases could not be compared')
    }
    const stopListening = bus.onSignal(portsChanged, () => {
      look().catch(warn)
    })
    try {
      while (!signal.aborted) {
        await look().catch(warn)
        await pause(clock, lookEveryMs, signal)
      }
    } finally {
      stopListening()
      await this.#turns.run(async () => {
        for (const id of this.#open.keys()) this.#shut(id)
      })
    }
  }

  async #compare(): Promise<void> {
    const rows = await this.parts.store.external()
    const wanted = new Map(rows.map(row => [row.id, row]))
    for (const [id, { port }] of this.#open) {
      const row = wanted.get(id)
      // One without a number was off since: who came by it then comes no more, and it gets another.
      if (row?.external_port !== port) this.#shut(id)
    }
    for (const row of rows) {
      const known = this.#open.get(row.id)
      if (known !== undefined) known.target = row
    }
    const closed = rows.filter(({ id }) => !this.#open.has(id))
    const place = closed.length === 0 ? undefined : await this.#look(closed)
    if (place === undefined) return
    for (const row of closed) await this.#listen(row, place)
  }

  /** Undefined where nothing can be opened: then no number is shown as the way to a database. */
  async #look(closed: readonly ExternalRow[]): Promise<Place | undefined> {
    const { reach, store, log } = this.parts
    try {
      const place = await reach.look()
      this.#nowhere = undefined
      return place
    } catch (error) {
      if (!isProblem(error)) throw error
      if (this.#nowhere !== error.message)
        log.warn({ reason: error.message }, 'no port can be opened for databases; trying again')
      this.#nowhere = error.message
      // An engine or a name server that is away says nothing: numbers are kept for when it is back.
      if (error.code === problems.noExternalAccess.code)
        for (const { id, external_port: port } of closed) await store.releasePort(id, port)
      return undefined
    }
  }

  async #listen(row: ExternalRow, place: Place): Promise<void> {
    const { clock, log } = this.parts
    try {
      const opened = await this.#openFor(row, place)
      const entry: OpenPort = { ...opened, sockets: new Set(), target: row }
      entry.server.on('connection', socket => {
        this.#forward(entry, socket)
      })
      if (row.external_port === entry.port || (await this.#take(row.id, entry))) this.#open.set(row.id, entry)
      this.#refused.delete(row.id)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const before = this.#refused.get(row.id)
      if (before?.reason !== reason)
        log.warn(
          { databaseId: row.id, port: row.external_port, reason },
          'cannot listen for a database; trying again'
        )
      const now = clock.elapsed()
      const since = before?.since ?? now
      this.#refused.set(row.id, { reason, since })
      if (row.external_port !== null && now - since >= keptMs) await this.#giveUpPort(row)
    }
  }

  /** At the number that it has, or another where that does not lead here any more. */
  async #openFor(
    { id, external_port: port }: ExternalRow,
    { address, ports }: Place
  ): Promise<{ server: Server; port: number }> {
    const { store } = this.parts
    if (port !== null) {
      if (ports === null || ports.includes(port)) return await open(address, port)
      await store.releasePort(id, port)
    }
    if (ports === null) return await open(address, 0)
    const held = new Set(await store.heldPorts())
    // By chance: the one that another database had a moment ago is not the first to be had.
    for (const free of shuffled(ports.filter(number => !held.has(number)))) {
      const opened = await open(address, free).catch(() => undefined)
      if (opened !== undefined) return opened
    }
    throw new Error('none of the ports of BUSBAR_DATABASE_PORTS is free')
  }

  async #giveUpPort({ id, external_port: port }: ExternalRow): Promise<void> {
    const { store, bus, log } = this.parts
    if (!(await store.releasePort(id, port))) return
    this.#refused.delete(id)
    log.warn({ databaseId: id, port }, 'the port of a database is taken: it gets another one')
    await bus.signal(portsChanged, id)
  }

  #forward(entry: OpenPort, socket: Socket): void {
    const { sockets } = entry
    socket.on('error', () => socket.destroy())
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    if (sockets.size > mostConnections) {
      socket.destroy()
      return
    }
    socket.pause()
    this.#connect(entry.target)
      .then(target => {
        target.once('close', () => socket.destroy())
        socket.once('close', () => target.destroy())
        if (socket.destroyed) {
          target.destroy()
          return
        }
        // An end of one side is passed on; the other may go on for as long as it likes.
        socket.pipe(target)
        target.pipe(socket)
      })
      .catch(() => socket.destroy())
  }

  async #connect({ container_id: containerId, container_port: port }: ExternalRow): Promise<Socket> {
    const runtime = this.parts.runtime.get()
    if (runtime === undefined || containerId === null) throw new Error('it does not run')
    const address = await runtime.dial(containerId, port)
    return await new Promise<Socket>((resolve, reject) => {
      const target = connect({ ...address, allowHalfOpen: true, timeout: connectMs })
      const fail = (error: Error): void => {
        target.destroy()
        reject(error)
      }
      target.once('timeout', () => fail(new Error('it does not answer')))
      target.once('error', fail)
      target.once('connect', () => {
        target.setTimeout(0)
        target.off('error', fail)
        target.on('error', () => target.destroy())
        resolve(target)
      })
    })
  }

  /** False, and it is closed again, where external access was turned off meanwhile. */
  async #take(id: string, entry: OpenPort): Promise<boolean> {
    let isTaken = false
    try {
      isTaken = await this.parts.store.takePort(id, entry.port)
    } finally {
      if (!isTaken) close(entry)
    }
    return isTaken
  }

  #shut(id: string): void {
    const entry = this.#open.get(id)
    this.#open.delete(id)
    this.#refused.delete(id)
    if (entry !== undefined) close(entry)
  }
}

function close({ server, sockets }: OpenPort): void {
  server.close()
  for (const socket of sockets) socket.destroy()
}

function shuffled(numbers: readonly number[]): number[] {
  const all = [...numbers]
  for (let left = all.length; left > 1; left--) {
    const [one = 0] = all.splice(randomInt(left), 1)
    all.push(one)
  }
  return all
}

const open = async (host: string, port: number): Promise<{ server: Server; port: number }> =>
  await new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true })
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      server.on('error', () => {})
      const address = server.address()
      if (address === null || typeof address === 'string') reject(new Error('it has no port'))
      else resolve({ server, port: address.port })
    })
  })
