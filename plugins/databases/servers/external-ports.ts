import { connect, createServer, type Server, type Socket } from 'node:net'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Bus, type Clock, type Log, type OptionalHandle, pause, Serial } from 'busbar/sdk'
import type { DatabaseStore } from '../records/database-store.js'
import { portsChanged } from '../status/status-board.js'

interface ExternalPortsParts {
  readonly store: DatabaseStore
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}

type ExternalRow = Awaited<ReturnType<DatabaseStore['external']>>[number]

interface OpenPort {
  readonly server: Server
  readonly sockets: Set<Socket>
  readonly port: number
  target: ExternalRow
}

/** Nobody but this machine: others come through a tunnel. */
const host = '127.0.0.1'
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
      else await this.#listen(row)
    }
  }

  async #listen(row: ExternalRow): Promise<void> {
    const { store, clock, log } = this.parts
    try {
      const opened = await open(row.external_port ?? 0)
      const entry: OpenPort = { ...opened, sockets: new Set(), target: row }
      entry.server.on('connection', socket => {
        this.#forward(entry, socket)
      })
      this.#open.set(row.id, entry)
      this.#refused.delete(row.id)
      if (row.external_port === null) await store.update(row.id, { external_port: entry.port })
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

  #shut(id: string): void {
    const entry = this.#open.get(id)
    this.#open.delete(id)
    this.#refused.delete(id)
    entry?.server.close()
    for (const socket of entry?.sockets ?? []) socket.destroy()
  }
}

const open = async (port: number): Promise<{ server: Server; port: number }> =>
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
