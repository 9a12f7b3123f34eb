import {
  type Access,
  access,
  type ProjectFacts,
  type ProjectFactsCache,
  type ProjectId,
  type ProjectRole,
  projectRoleFor,
  type Reach,
  type Resolved,
  type SignedInCaller,
  type Tx
} from 'busbar/sdk'
import { credentialsTopic } from '../auth/credentials.js'
import type { Refusal } from '../auth/refusal.js'
import { LookupCache } from '../cache/lookup-cache.js'
import type { AccessChange } from '../changes/access-change.js'
import { mapAwaitable } from '../clock/map-awaitable.js'
import { withDeadline } from '../clock/waits.js'
import type { Signals } from '../database/listener.js'
import type { Ownership, ResourceOwners } from '../resources/resources.js'
import type { ServiceRegistry } from '../services/registry.js'
import { AccessWatch } from './access-watch.js'
import { decidePins, decideProject, notFound } from './decision.js'

type Projects = Resolved<typeof access>['projects']

type ProjectDecision =
  | { readonly refused: Refusal }
  | { readonly refused: null; readonly project: ProjectId | undefined }

const everywhere: ProjectDecision = Object.freeze({ refused: null, project: undefined })
const topic = 'project-facts'
/** How long a request waits to be let in; the operation's own limit begins after that. */
const lookUpLimitMs = 15_000

/**
 * Finds the project a request concerns and decides whether the caller may go there. The facts come from
 * the plugins that own them and are remembered by id, so a warm request asks the database nothing.
 */
export class ProjectAccess implements ProjectFactsCache {
  readonly #facts = new LookupCache<ProjectFacts>(10_000)
  readonly #owners = new LookupCache<Ownership>(50_000)
  /** Called when a user may no longer see a project, whichever process decided that. */
  readonly watchers = new Set<(change: AccessChange) => void>()
  readonly #open = new AccessWatch()
  readonly #projects: Projects

  constructor(
    registry: ServiceRegistry,
    private readonly resources: Pick<ResourceOwners, 'ownerOf'>,
    private readonly signals: Signals,
    private readonly afterCommit: (tx: Tx, run: () => void) => void
  ) {
    this.#projects = registry.contributions(access.projects)
    const tell = (change: AccessChange): void => {
      for (const look of this.watchers) look(change)
    }
    this.watchers.add(change => {
      this.#open.after(change)
    })
    signals.onSignal(topic, id => {
      this.#facts.forget(id)
      tell({ kind: 'project', id })
    })
    signals.onReconnect(() => {
      this.forgetAll()
      tell({ kind: 'all' })
    })
    // A user who is deleted leaves every project; the database sends no notification of that.
    const reread = (userId: string): void => {
      this.#facts.forgetWhere(({ members }) => userId in members)
      tell({ kind: 'user', id: userId })
    }
    signals.onSignal(credentialsTopic, data => {
      if (data.startsWith('user:')) reread(data.slice('user:'.length))
    })
  }

  /** For other processes' writes that were missed, and for owners that have been turned off and on. */
  forgetAll(): void {
    this.#facts.clear()
    this.#owners.clear()
  }

  async invalidate(projectId: string, tx?: Tx): Promise<void> {
    // The signal of a transaction comes back a moment after the commit; the writer's next request must not see the old facts.
    if (tx !== undefined)
      this.afterCommit(tx, () => {
        this.#facts.forget(projectId)
      })
    await this.signals.signal(topic, projectId, tx)
  }

  /** Calls `look` when the caller's access to the project may have changed; returns how to stop. */
  watch(caller: SignedInCaller, project: ProjectId, look: () => void): () => void {
    return this.#open.watch(caller, project, look)
  }

  /** The guard's last step: pins, visibility, ownership and the chain of nested ids. */
  decide(
    caller: SignedInCaller,
    rules: Exclude<Access, { kind: 'public' }>,
    params: Readonly<Record<string, string | undefined>>
  ): ProjectDecision | Promise<ProjectDecision> {
    const rule = rules.project
    if (typeof rule === 'string') return everywhere
    const id = params[rule.param] ?? ''
    const isSelf = 'self' in rule && params[rule.self ?? ''] === caller.user.id
    const needed = isSelf ? 'viewer' : projectRoleFor(rules)
    if ('of' in rule) {
      return mapAwaitable(this.#ownerOfAny(rule.of, id), found =>
        // An unknown id is outside every pin set; 404 says as much.
        found === undefined ? { refused: notFound } : this.decideProject(caller, found.projectId, needed)
      )
    }
    const decision = this.decideProject(caller, id, needed)
    const { chain } = rule
    return chain === undefined
      ? decision
      : mapAwaitable(decision, async own =>
          own.refused !== null || (await this.#isChained(id, chain, params)) ? own : { refused: notFound }
        )
  }

  decideProject(
    caller: SignedInCaller,
    projectId: string,
    needed: ProjectRole
  ): ProjectDecision | Promise<ProjectDecision> {
    const pinned = decidePins(caller, projectId)
    if (pinned !== null) return { refused: pinned }
    const facts =
      this.#facts.get(projectId) ??
      this.#facts.load(
        projectId,
        async () =>
          await withDeadline(
            this.#projects.get('projects')?.facts(projectId),
            lookUpLimitMs,
            'the facts of a project'
          )
      )
    return mapAwaitable<ProjectFacts | undefined, ProjectDecision>(facts, known => {
      const refused = decideProject(caller, known, needed)
      return refused === null ? { refused, project: projectId as ProjectId } : { refused }
    })
  }

  /** Every further id in the path must lie in the project and in the resources named before it. */
  async #isChained(
    projectId: string,
    chain: Readonly<Record<string, string | undefined>>,
    params: Readonly<Record<string, string | undefined>>
  ): Promise<boolean> {
    for (const [param, kind] of Object.entries(chain)) {
      if (kind === undefined) continue
      const owner = await this.#ownerOf(kind, params[param] ?? '')
      if (owner?.projectId !== projectId) return false
      for (const [otherParam, otherKind] of Object.entries(chain)) {
        // One that is in another of its own kind stands beside it in no path.
        const parent = otherKind === undefined || otherKind === kind ? undefined : owner.parents[otherKind]
        if (parent !== undefined && parent !== params[otherParam]) return false
      }
    }
    return true
  }

  #ownerOfAny(
    kinds: string | readonly string[],
    id: string
  ): Ownership | undefined | Promise<Ownership | undefined> {
    if (typeof kinds === 'string') return this.#ownerOf(kinds, id)
    const [kind, ...others] = kinds
    if (kind === undefined) return undefined
    return mapAwaitable(this.#ownerOf(kind, id), found => found ?? this.#ownerOfAny(others, id))
  }

  #ownerOf(kind: string, id: string): Ownership | undefined | Promise<Ownership | undefined> {
    // A resource never changes its owner, so what is remembered stays true; a deleted one is caught by
    // its store, whose statements carry the project's id too.
    const key = `${kind}/${id}`
    return (
      this.#owners.get(key) ??
      this.#owners.load(
        key,
        async () =>
          await withDeadline(this.resources.ownerOf(kind, id), lookUpLimitMs, `the owner of the ${kind}`)
      )
    )
  }
}

/** What a caller may see in lists. */
export function reachOf(caller: SignedInCaller): Reach {
  return {
    callerId: caller.user.id,
    userId: caller.user.role === 'admin' ? null : caller.user.id,
    pins: caller.kind === 'token' ? caller.pins : null
  }
}
