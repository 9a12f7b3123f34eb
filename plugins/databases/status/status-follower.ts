import type { ContainerEvent, ContainerRuntime } from 'busbar/api/containers'
import { type Bus, type Clock, type Log, type OptionalHandle, Serial } from 'busbar/sdk'
import type { DatabaseStore } from '../records/database-store.js'
import { statusAfter, statusOf } from './container-status.js'
import { lookAgain, type StatusBoard } from './status-board.js'

/** A stop has 30 seconds, and what ends then is heard of a moment later. */
const askedStopMs = 45_000

interface StatusFollowerParts {
  readonly store: DatabaseStore
  readonly board: StatusBoard
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly runtime: OptionalHandle<ContainerRuntime>
}

/** Keeps every database's status equal to that of its container, while nothing is done for it. */
export class StatusFollower {
  /** One at a time: an event that comes while the engine is asked is newer than its answer. */
  readonly #turns = new Serial()

  constructor(private readonly parts: StatusFollowerParts) {}

  async run(signal: AbortSignal): Promise<void> {
    const { bus, log, runtime } = this.parts
    const stopListening = bus.onSignal(lookAgain, id => {
      this.#turns
        .run(async () => await this.#look(id))
        .catch((error: unknown) =>
          log.warn({ err: error, databaseId: id }, 'the container of a database could not be looked at')
        )
    })
    try {
      await runtime.whileAvailable(signal, async (engine, following) => {
        // Every connection begins with a `resync`, so nothing that happened before it is missed.
        for await (const event of engine.events(following))
          await this.#turns.run(async () => {
            if (event.kind === 'resync') await this.#compareAll(engine)
            else await this.#apply(event)
          })
      })
    } finally {
      stopListening()
    }
  }

  async #apply(event: Extract<ContainerEvent, { kind: 'container' }>): Promise<void> {
    const { databaseId } = event.owner
    if (databaseId === undefined) return
    for (let attempt = 0; attempt < 3; attempt++) {
      const row = await this.parts.store.followed(databaseId)
      if (row?.container_id !== event.containerId) return
      const isAsked =
        row.stop_asked_at !== null &&
        row.stop_asked_at.getTime() > this.parts.clock.now().getTime() - askedStopMs
      const { status, reason } = statusAfter(row.status, event, isAsked)
      if (status === row.status || (await this.parts.board.follow(row, status, reason))) return
    }
  }

  async #compareAll(engine: ContainerRuntime): Promise<void> {
    const { store, board } = this.parts
    const rows = await store.allFollowed()
    if (rows.length === 0) return
    const containers = new Map((await engine.list({})).map(one => [one.id, one]))
    for (const row of rows) {
      const { status, reason } = statusOf(row.status, containers.get(row.container_id))
      if (status !== row.status) await board.follow(row, status, reason)
    }
  }

  async #look(databaseId: string): Promise<void> {
    const { store, board, runtime } = this.parts
    const engine = runtime.get()
    const row = await store.followed(databaseId)
    if (engine === undefined || row === undefined) return
    const { status, reason } = statusOf(row.status, await engine.inspect(row.container_id))
    if (status !== row.status) await board.follow(row, status, reason)
  }
}
