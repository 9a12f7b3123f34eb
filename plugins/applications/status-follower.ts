import type { ContainerEvent, ContainerRuntime } from 'busbar/api/containers'
import { type Bus, type Log, type OptionalHandle, Serial } from 'busbar/sdk'
import { statusAfter, statusOf } from './container-status.js'
import type { DeployStore } from './deploy-store.js'
import { MemoryEnds } from './memory-ends.js'
import type { StatusBoard } from './status-board.js'

/** "Look at this application's container again": sent to whichever process follows the engine. */
export const lookAgain = 'look-again'

interface StatusFollowerParts {
  readonly store: DeployStore
  readonly board: StatusBoard
  readonly bus: Bus
  readonly log: Log
  readonly runtime: OptionalHandle<ContainerRuntime>
}

/** Keeps every application's status equal to that of its current container, while any process of the installation lives. */
export class StatusFollower {
  /** One at a time: an event that comes while the engine is asked is newer than its answer. */
  readonly #turns = new Serial()
  readonly #memoryEnds = new MemoryEnds()

  constructor(private readonly parts: StatusFollowerParts) {}

  async run(signal: AbortSignal): Promise<void> {
    const { bus, log, runtime } = this.parts
    const stopListening = bus.onSignal(lookAgain, id => {
      this.#turns
        .run(async () => await this.#look(id))
        .catch((error: unknown) =>
          log.warn({ err: error, applicationId: id }, 'the container could not be looked at')
        )
    })
    try {
      await runtime.whileAvailable(signal, async (engine, following) => {
        // Every connection begins with a `resync`, so nothing that happened before it is missed.
        for await (const event of engine.events(following)) {
          await this.#turns.run(async () => {
            if (event.kind === 'resync') await this.#compareAll(engine)
            else await this.#apply(event)
          })
        }
      })
    } finally {
      stopListening()
    }
  }

  async #apply(event: Extract<ContainerEvent, { kind: 'container' }>): Promise<void> {
    const { applicationId, deploymentId } = event.owner
    const hasLackedMemory = this.#memoryEnds.isOne(event)
    if (applicationId === undefined || deploymentId === undefined) return
    for (let attempt = 0; attempt < 3; attempt++) {
      const row = await this.parts.store.followed(applicationId)
      // A container that is draining, or not proven yet, says nothing about the application.
      if (row?.container_deployment_id !== deploymentId) return
      const status = statusAfter(row.status, { ...event, hasLackedMemory })
      if (status === row.status || (await this.parts.board.follow([{ ...row, was: row.status, status }])))
        return
    }
  }

  async #compareAll(engine: ContainerRuntime): Promise<void> {
    const { store, board } = this.parts
    const rows = await store.allFollowed()
    const listed = await engine.list({})
    this.#memoryEnds.keep(new Set(listed.map(({ id }) => id)))
    const containers = new Map(
      listed.map(one => [`${one.owner.applicationId ?? ''}/${one.owner.deploymentId ?? ''}`, one])
    )
    await board.follow(
      rows.flatMap(row => {
        const status = statusOf(row.status, containers.get(`${row.id}/${row.container_deployment_id}`))
        return status === row.status ? [] : [{ ...row, was: row.status, status }]
      })
    )
  }

  async #look(applicationId: string): Promise<void> {
    const { store, board, runtime } = this.parts
    const engine = runtime.get()
    const row = await store.followed(applicationId)
    if (engine === undefined || row === undefined) return
    const [container] = await engine.list({ applicationId, deploymentId: row.container_deployment_id })
    const status = statusOf(row.status, container)
    if (status !== row.status) await board.follow([{ ...row, was: row.status, status }])
  }
}
