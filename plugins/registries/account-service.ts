import { randomUUID } from 'node:crypto'
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
  withTimeLimit
} from 'busbar/sdk'
import type { AccountOwner, AccountRow, AccountStore } from './account-store.js'
import type { RegistryAccount, RegistryAccounts, RegistryTrial, TrialVerdict } from './api.js'
import { problems } from './problems.js'
import { parseRegistry, registryOfImage } from './registry-name.js'
import type { AccountAnswer, AccountBody } from './schemas.js'

interface AccountServiceParts {
  readonly store: AccountStore
  readonly db: Database
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly projects: ProjectDirectory
  readonly trials: Contributions<RegistryTrial>
}

/** Of one project, or of the installation. */
const mostAccounts = 100
/** A registry has 20 seconds, and a name server may be slow as well. */
const trialLimitMs = 30_000

const untried: TrialVerdict = {
  status: 'unreachable',
  reason:
    'accounts are tried by the plugin that pulls images, and none is on; enable the plugin "builds", and try again'
}

export class AccountService implements RegistryAccounts {
  constructor(private readonly parts: AccountServiceParts) {}

  async list(owner: AccountOwner, page: Page): Promise<Rows<AccountAnswer>> {
    const { rows, total } = await this.parts.store.list(owner, page)
    return { rows: rows.map(answer), total }
  }

  /** The account of its registry: a new one, or another one in place of it. */
  async put(owner: AccountOwner, { registry: written, username, password }: AccountBody) {
    const { db, store, secrets, clock, projects } = this.parts
    const registry = parseRegistry(written)
    if (registry === undefined)
      throw problems.badRegistry({ registry: written.slice(0, 100) }, { field: 'registry' })
    const now = clock.now()
    return await db.transaction(async tx => {
      if (owner !== null && (await projects.find(owner, tx)) === undefined)
        throw problems.projectGone({ projectId: owner })
      const stored = await store.hold(owner, tx)
      const id = stored.get(registry)
      if (id !== undefined) {
        const sealed = secrets.seal(password, placeOf(id))
        const row = await store.replace(id, { username, password: sealed, updated_at: now }, tx)
        if (row !== undefined) return answer(row)
      }
      if (stored.size >= mostAccounts) throw problems.tooMany({ limit: mostAccounts })
      const row = newRow(owner, { registry, username }, now)
      await store.insert({ ...row, password: secrets.seal(password, placeOf(row.id)) }, tx)
      return answer(row)
    })
  }

  async remove(owner: AccountOwner, accountId: string): Promise<{ status: string }> {
    if (!(await this.parts.store.remove(owner, accountId))) throw problems.notFound({ accountId })
    return { status: 'deleted' }
  }

  /** Whether its registry lets it in, now. */
  async try(owner: AccountOwner, accountId: string): Promise<TrialVerdict> {
    const row = await this.parts.store.find(owner, accountId)
    if (row === undefined) throw problems.notFound({ accountId })
    const [trial] = this.parts.trials.entries()
    if (trial === undefined) return untried
    const account = this.#inClear(row)
    return await askContribution(
      async () =>
        await withTimeLimit(
          { ms: trialLimitMs },
          async signal => await trial.value.try(row.registry, account, signal)
        ),
      { ms: trialLimitMs, what: `the trial of an account by the plugin "${trial.plugin}"` }
    )
  }

  async find(projectId: string, image: string): Promise<RegistryAccount | undefined> {
    const row = await this.parts.store.chosen(projectId, registryOfImage(image))
    return row === undefined ? undefined : this.#inClear(row)
  }

  #inClear({ id, project_id, registry, username, password }: AccountRow): RegistryAccount {
    const { secrets, log } = this.parts
    const of = project_id === null ? 'installation' : 'project'
    try {
      return { username, password: secrets.open(password, placeOf(id)), of }
    } catch (error) {
      log.error(
        { err: error, accountId: id, registry },
        'the password of a registry account cannot be decrypted'
      )
      throw problems.unreadable({ username, registry })
    }
  }
}

const placeOf = (row: string) => ({ table: 'account', column: 'password', row })

const newRow = (
  owner: AccountOwner,
  account: Pick<AccountRow, 'registry' | 'username'>,
  now: Date
): Omit<AccountRow, 'password'> => ({
  id: randomUUID(),
  project_id: owner,
  ...account,
  created_at: now,
  updated_at: now
})

const answer = ({
  id,
  registry,
  username,
  created_at,
  updated_at
}: Omit<AccountRow, 'password'>): AccountAnswer => ({
  id,
  registry,
  username,
  created_at,
  updated_at
})
