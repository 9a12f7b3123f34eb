import {
  type Clock,
  type ExtensionPoint,
  type Log,
  type ResourceTeardown,
  type Tx,
  withTimeLimit
} from 'busbar/sdk'
import type { Postgres } from '../database/postgres.js'
import type { ResourceRecord } from '../declarations/records.js'
import { paramOf, teardownJob, wordsOf } from '../declarations/resource-kinds.js'
import type { JobRunner, RecordedJob } from '../jobs/job-runner.js'
import type { ServiceRegistry } from '../services/registry.js'
import { heldRemedy, tableHolding } from './held-row.js'
import { ResourceTable } from './resource-table.js'
import { hasParent, type RunningKind, type RunningKinds } from './running-kinds.js'
import { askPlugin, dependantsFirst, runAll, type TeardownStep } from './teardown-steps.js'

/** A resource that is removed, and the one that it is removed with. */
interface Target {
  readonly kind: string
  readonly id: string
  readonly within?: Target
}
interface Round {
  readonly kind: string
  readonly id: string
  readonly round: number
}

/** A plugin that is off, started for its steps in a removal and for nothing else. */
export interface TemporaryRun {
  readonly plugin: string
  readonly schema: string
  readonly self: object
  readonly resources: readonly ResourceRecord[]
  contributionsTo<T>(point: ExtensionPoint<T>): readonly T[]
}

/** Plugins that are off. */
interface DisabledPlugins {
  /**
   * Starts the plugin that owns a database schema, registered nowhere, passes it to `use`, and stops it. Undefined when
   * there is no such plugin or it is on. Rejects when it does not start, and with what `use` rejects with; `signal` ends
   * the wait for its turn.
   */
  runTemporarily<T>(
    schema: string,
    signal: AbortSignal,
    use: (run: TemporaryRun) => Promise<T>
  ): Promise<T | undefined>
}

interface RemovalParts {
  readonly postgres: Postgres
  readonly kinds: RunningKinds
  readonly jobs: Pick<JobRunner, 'submit'>
  readonly registry: ServiceRegistry
  readonly disabled: DisabledPlugins
  /** The ids of all plugins, each after what it needs. */
  readonly order: () => readonly string[]
  readonly clock: Clock
  readonly log: Log
}

const minute = 60_000
/** After it the next round begins where this one was. */
const roundLimitMs = 15 * minute
/** For what does not end with the round. */
const jobLimitMs = roundLimitMs + minute
/** What a plugin may take within a transaction of the kernel's. */
const transactionLimitMs = 20_000
const attempts = 10
/** Rows may refer to each other in a circle. */
const deepest = 8

/** How long a removal waits before its next round: 5 s, doubling, to 5 minutes. */
export const roundDelayMs = (round: number): number => Math.min(5_000 * 2 ** Math.min(round, 16), 5 * minute)

/** Takes apart what has been marked for removal: see `ResourceRemoval` for the order. */
export class ResourceRemovals {
  constructor(private readonly parts: RemovalParts) {}

  /** False when the resource does not exist or is marked already. */
  async begin(plugin: string, { kind, id }: Target, tx: Tx): Promise<boolean> {
    const { kinds, clock } = this.parts
    const running = kinds.get(kind)
    if (running?.record.plugin !== plugin || running.record.removal === undefined)
      throw new Error(`the plugin "${plugin}" declares no resource "${kind}" with a removal`)
    if (!(await this.#table(running).mark(id, clock.now(), tx))) return false
    await this.#enqueue(running, { kind, id, round: 0 }, { tx })
    return true
  }

  /**
   * Takes up now what is marked of a plugin, or of all: what an earlier process left, even where its job has run out of
   * attempts. Rejects where a table is not as declared.
   */
  async resume(plugin?: string): Promise<void> {
    for (const running of this.parts.kinds.all()) {
      const { plugin: owner, kind, removal } = running.record
      if (plugin !== undefined && plugin !== owner) continue
      await this.#table(running).check()
      if (removal === undefined) continue
      for (const id of await this.#table(running).marked())
        await this.#enqueue(running, { kind, id, round: 0 })
    }
  }

  /** The durable job of a plugin that has resources with a removal. */
  jobsOf(plugin: string, records: readonly ResourceRecord[]): RecordedJob[] {
    if (records.every(({ removal }) => removal === undefined)) return []
    return [
      {
        name: teardownJob,
        lane: 'short',
        attempts,
        timeoutMs: jobLimitMs,
        run: async (payload, { signal }) => {
          const { kind, id, round } = payload as Partial<Round>
          const running = kind === undefined ? undefined : this.parts.kinds.get(kind)
          // Of an earlier release, or a kind that is no more: what is marked was resumed when the plugin started.
          if (id === undefined || running?.record.plugin !== plugin) return
          await this.#round(running, { kind: running.record.kind, id, round: round ?? 0 }, signal)
        }
      }
    ]
  }

  /** The resource is removed, or the next round is in the queue. */
  async #round(running: RunningKind, { kind, id, round }: Round, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    try {
      await withTimeLimit({ signal, ms: roundLimitMs }, async limited => {
        await this.#remove(running, { kind, id }, limited)
      })
    } catch (error) {
      if (signal.aborted) throw error
      const table = tableHolding(error)
      const delayMs = roundDelayMs(round)
      const facts = { plugin: running.record.plugin, [paramOf(kind)]: id, round, delayMs }
      const words = `the ${wordsOf(kind)} is not removed yet`
      if (table === null) log.error({ err: error, ...facts }, `${words}: a step of the clean-up failed`)
      else log.warn({ ...facts, table }, `${words}: ${table} holds rows of it; ${heldRemedy(table)}`)
      await this.#enqueue(
        running,
        { kind, id, round: round + 1 },
        { runAt: new Date(clock.now().getTime() + delayMs) }
      )
    }
  }

  /** Where rows of a plugin that is off keep it from its end, that plugin is started for its steps alone, and all runs again. */
  async #remove(running: RunningKind, target: Target, signal: AbortSignal): Promise<void> {
    const asked = new Set<string>()
    for (;;) {
      try {
        return await this.#takeApart(running, target, signal)
      } catch (error) {
        const schema = tableHolding(error)?.split('.')[0]
        if (schema === undefined || asked.has(schema)) throw error
        asked.add(schema)
        const isAsked = await this.parts.disabled.runTemporarily(schema, signal, async run => {
          const steps = this.#stepsOfTemporary(running.record, target, run)
          await runAll(steps, signal)
          return steps.length > 0
        })
        if (isAsked !== true) throw error
      }
    }
  }

  async #takeApart(running: RunningKind, target: Target, signal: AbortSignal): Promise<void> {
    const {
      record: { plugin, removal },
      record,
      schema,
      self
    } = running
    const table = this.#table(running)
    const row = await table.markedRow(target.id)
    if (row === undefined || removal === undefined) return
    await runAll(this.#stepsOf(record, target), signal)
    if (removal.run !== undefined)
      await askPlugin({ plugin, step: 'the last step of the removal', signal }, async own => {
        await removal.run?.(row, { signal: own }, self)
      })
    await this.parts.postgres.onTablesOf(plugin, schema).transaction(async tx => {
      const deleted = await table.delete(target.id, tx)
      if (deleted === undefined || removal.deleted === undefined) return
      const ask = { plugin, step: 'what is done when a row is deleted', signal, ms: transactionLimitMs }
      await askPlugin(ask, async () => {
        await removal.deleted?.(deleted, tx, self)
      })
    })
  }

  /** What the plugins that are on have to do, dependants first: those whose resources lie in it, and those who keep something of it. */
  #stepsOf({ removal }: ResourceRecord, target: Target): TeardownStep[] {
    const { kinds, registry, order } = this.parts
    const point = removal?.teardown
    const contributions = point === undefined ? [] : registry.contributions(point).entries()
    return dependantsFirst(
      [
        ...kinds.childrenOf(target.kind).map(inner => this.#stepWithin(inner, target)),
        ...contributions.map(({ plugin, value }) => teardownStep(plugin, value, target.id))
      ],
      order()
    )
  }

  #stepsOfTemporary(
    { removal }: ResourceRecord,
    target: Target,
    { plugin, schema, self, resources, contributionsTo }: TemporaryRun
  ): TeardownStep[] {
    const point = removal?.teardown
    return [
      ...resources
        .filter(record => hasParent(record, target.kind))
        .map(record => this.#stepWithin({ record, schema, self }, target)),
      ...(point === undefined ? [] : contributionsTo(point)).map(value =>
        teardownStep(plugin, value, target.id)
      )
    ]
  }

  /** Removes all resources of a kind that lie in the target. */
  #stepWithin(inner: RunningKind, target: Target): TeardownStep {
    const { clock } = this.parts
    return {
      plugin: inner.record.plugin,
      run: async signal => {
        const ids = await this.#table(inner).markWithin(target, clock.now())
        const { kind, plugin } = inner.record
        await runAll(
          ids
            .filter(id => !isAround({ kind, id }, target))
            .map(id => ({
              plugin,
              run: async limited => {
                await this.#remove(inner, { kind, id, within: target }, limited)
              }
            })),
          signal
        )
      }
    }
  }

  /** Of those with the same turn one is removed at a time: each may take minutes, and others wait for a worker too. */
  async #enqueue(
    running: RunningKind,
    payload: Round,
    { runAt, tx }: { readonly runAt?: Date; readonly tx?: Tx } = {}
  ): Promise<void> {
    const turn = (await this.#turnOf(running, payload.id, tx)) ?? payload.id
    await this.parts.jobs.submit(
      [
        {
          plugin: running.record.plugin,
          name: teardownJob,
          payload,
          key: payload.id,
          queue: `${teardownJob}:${turn}`,
          attempts,
          ...(runAt !== undefined && { runAt })
        }
      ],
      tx
    )
  }

  async #turnOf(
    running: RunningKind,
    id: string,
    tx: Tx | undefined,
    levels = deepest
  ): Promise<string | undefined> {
    if (levels === 0) return undefined
    const table = this.#table(running)
    const column = running.record.removal?.turnsBy
    if (column !== undefined) return await table.valueOf(id, column, tx)
    const parents = await table.parentsOf(id, { tx })
    for (const kind of Object.keys(running.record.parents)) {
      const [parent, parentId] = [this.parts.kinds.get(kind), parents?.[kind]]
      if (parent !== undefined && parentId !== undefined)
        return (await this.#turnOf(parent, parentId, tx, levels - 1)) ?? parentId
    }
    return undefined
  }

  #table(running: RunningKind): ResourceTable {
    return new ResourceTable(this.parts.postgres, running)
  }
}

/** Whether a resource is the target or what that is removed with: rows may refer to each other in a circle. */
const isAround = ({ kind, id }: Target, target: Target | undefined): boolean =>
  target !== undefined &&
  ((target.kind === kind && target.id === id) || isAround({ kind, id }, target.within))

const teardownStep = (plugin: string, value: ResourceTeardown, id: string): TeardownStep => ({
  plugin,
  run: async signal => {
    await askPlugin({ plugin, step: 'the teardown', signal }, async own => {
      await value.teardown(id, { signal: own })
    })
  }
})
