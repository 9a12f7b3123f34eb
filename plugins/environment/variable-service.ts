import { randomUUID } from 'node:crypto'
import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ProjectDirectory } from 'busbar/api/projects'
import {
  askContribution,
  type Clock,
  type Contributions,
  type Database,
  type Log,
  type Page,
  type Rows,
  type Secrets,
  type SignedInCaller,
  type Tx
} from 'busbar/sdk'
import type { EnvironmentVariables, Variable, VariableSource } from './api.js'
import { problems } from './problems.js'
import type { VariableAnswer, VariableInput } from './schemas.js'
import { decideSet, isChange, type SetChange } from './variable-set.js'
import type { VariableOwner, VariableRow, VariableStore } from './variable-store.js'

interface VariableServiceParts {
  readonly store: VariableStore
  readonly db: Database
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly projects: ProjectDirectory
  readonly applications: ApplicationRegistry
  readonly sources: Contributions<VariableSource>
}

const sourceLimitMs = 20_000

export class VariableService implements EnvironmentVariables {
  constructor(private readonly parts: VariableServiceParts) {}

  /** A token sees no value, a session those that are not secret. */
  async list(owner: VariableOwner, caller: SignedInCaller, page: Page): Promise<Rows<VariableAnswer>> {
    const { store } = this.parts
    if (!(await store.hasOwner(owner))) throw problems.ownerGone()
    const { rows, total } = await store.list(owner, page)
    return {
      rows: rows.map(row => (caller.kind === 'session' && !row.is_secret ? this.#inClear(row) : hidden(row))),
      total
    }
  }

  async reveal(owner: VariableOwner, variableId: string): Promise<{ value: string }> {
    const { store } = this.parts
    const row = (await store.hasOwner(owner)) ? await store.find(owner, variableId) : undefined
    if (row === undefined) throw problems.notFound({ variableId })
    return { value: this.#open(row) ?? unreadable(row.key) }
  }

  /** Replaces the whole set; what the client says is unchanged keeps its stored value. */
  async replace(owner: VariableOwner, inputs: readonly VariableInput[]): Promise<{ status: string }> {
    const { db, store, projects, applications } = this.parts
    await db.transaction(async tx => {
      if ((await projects.find(owner.projectId, tx)) === undefined) throw problems.ownerGone()
      const stored = await store.hold(owner, tx)
      if (!(await store.hasOwner(owner, tx))) throw problems.ownerGone()
      const change = decideSet(
        stored.map(row => ({ ...row, value: this.#open(row) })),
        inputs
      )
      if (!isChange(change)) return
      await this.#write(owner, change, tx)
      if (owner.applicationId !== null) await applications.markConfigChanged(owner.applicationId, tx)
    })
    return { status: 'updated' }
  }

  async merged(projectId: string, applicationId: string): Promise<readonly Variable[]> {
    const { store, sources } = this.parts
    const found = new Map<string, Variable>()
    const own = new Set<string>()
    for (const row of await store.merged(projectId, applicationId)) {
      const value = this.#open(row) ?? unreadable(row.key)
      found.set(row.key, { key: row.key, value, isSecret: row.is_secret })
      if (row.is_own) own.add(row.key)
    }
    for (const { value: source, plugin } of sources.entries()) {
      const given = await askContribution(async () => await source.variablesOf(applicationId), {
        ms: sourceLimitMs,
        what: `the plugin "${plugin}", asked for variables,`
      })
      for (const variable of given) if (!own.has(variable.key)) found.set(variable.key, variable)
    }
    return [...found.values()]
  }

  async #write(owner: VariableOwner, { add, update, remove }: SetChange, tx: Tx): Promise<void> {
    const { store, clock } = this.parts
    const now = clock.now()
    await store.remove(owner, remove, tx)
    await store.update(
      owner,
      update.map(({ value, ...rest }) => ({
        ...rest,
        value: value === undefined ? null : this.#seal(rest.id, value)
      })),
      now,
      tx
    )
    const added = add.map(({ value, ...rest }) => {
      const id = randomUUID()
      return { ...rest, id, value: this.#seal(id, value) }
    })
    await store.insert(owner, added, now, tx)
  }

  #seal(row: string, value: string): string {
    return this.parts.secrets.seal(value, { table: 'variable', column: 'value', row })
  }

  /** Undefined when the key that sealed it is gone: the caller decides what that means. */
  #open({ id, key, value }: Pick<VariableRow, 'id' | 'key' | 'value'>): string | undefined {
    const { secrets, log } = this.parts
    try {
      return secrets.open(value, { table: 'variable', column: 'value', row: id })
    } catch (error) {
      log.error({ err: error, variableId: id, key }, 'a stored variable cannot be decrypted')
      return undefined
    }
  }

  #inClear(row: VariableRow): VariableAnswer {
    const value = this.#open(row)
    return value === undefined ? hidden(row) : { ...row, value }
  }
}

function hidden({ value: _, ...row }: VariableRow): VariableAnswer {
  return row
}

function unreadable(key: string): never {
  throw problems.unreadable({ key })
}
