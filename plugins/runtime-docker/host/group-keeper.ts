import { isProblem, type Log } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { ControlGroups } from './control-groups.js'
import { factsScript, liftScript, limitSteps, readFacts, stepsScript } from './group-files.js'
import { groupLimits } from './group-limits.js'
import { groupTools, type HostTools, withHostTools } from './host-tools.js'

export interface GroupKeeperDependencies {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly log: Log
  /** Those that have a network, without which there is no container. */
  readonly projects: () => Promise<readonly string[]>
}

/** `failed`: all containers together may use whatever the machine has. */
type GroupState =
  | { readonly kind: 'unknown' | 'limited' }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * Leaves the machine, the engine, the database and the platform what they need of memory and processes, whatever
 * containers do: these run in one control group, and in it in one of their project, whose limits it sets. One at a time.
 */
export class GroupKeeper {
  #state: GroupState = { kind: 'unknown' }
  #groups: Promise<ControlGroups | undefined> | undefined
  /** Whose limits were looked at since this process started. */
  #known: ReadonlySet<string> = new Set()

  constructor(private readonly dependencies: GroupKeeperDependencies) {}

  get state(): GroupState {
    return this.#state
  }

  /** For the engine: in which group the containers of a project are to be. Undefined where the engine keeps none. */
  async parentOf(projectId: string | undefined): Promise<string | undefined> {
    return (await this.#ownGroups())?.parentOf(projectId)
  }

  /** As it is named in paths of control groups. Undefined where the engine keeps none. */
  async groupOfAll(): Promise<string | undefined> {
    return (await this.#ownGroups())?.all
  }

  /** Resolves when the limits of a project that has a network were set, or it is known that they cannot be. */
  async ensure(projectId: string): Promise<void> {
    if (!this.#known.has(projectId)) await this.#apply()
  }

  /** Sets them anew: the machine may have lost them, or have other projects. Without a project they go. */
  async refresh(): Promise<void> {
    // Another engine may have come back.
    this.#groups = undefined
    await this.#apply()
  }

  async #apply(): Promise<void> {
    try {
      let projects = await this.dependencies.projects()
      if (projects.length === 0 && this.#state.kind === 'unknown') return
      const groups = await this.#ownGroups()
      if (groups === undefined) throw new Error('the engine uses no control groups')
      if (projects.length === 0) {
        this.#known = new Set()
        await this.#open(async tools => await liftGroups(tools, groups))
        // Another process may have made a network meanwhile.
        projects = await this.dependencies.projects()
      }
      if (projects.length === 0) this.#state = { kind: 'unknown' }
      else {
        await this.#open(async tools => await setLimits(tools, groups, projects))
        this.#become({ kind: 'limited' })
      }
      this.#known = new Set(projects)
    } catch (error) {
      if (isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE') throw error
      this.#become({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) })
    }
  }

  async #open<T>(use: (tools: HostTools) => Promise<T>): Promise<T> {
    return await withHostTools(this.dependencies.engine, this.dependencies.instanceId, use, groupTools)
  }

  async #ownGroups(): Promise<ControlGroups | undefined> {
    this.#groups ??= this.#askDriver()
    const asked = this.#groups
    return await asked.catch((error: unknown) => {
      if (this.#groups === asked) this.#groups = undefined
      throw error
    })
  }

  async #askDriver(): Promise<ControlGroups | undefined> {
    const { engine, instanceId } = this.dependencies
    const info: { readonly CgroupDriver?: unknown } = await engine.call(
      'describe itself',
      async docker => await docker.info()
    )
    const driver = info.CgroupDriver
    return driver === 'cgroupfs' || driver === 'systemd' ? new ControlGroups(instanceId, driver) : undefined
  }

  #become(state: GroupState): void {
    const before = this.#state
    this.#state = state
    if (state.kind !== 'failed' || (before.kind === 'failed' && before.reason === state.reason)) return
    this.dependencies.log.warn(
      { reason: state.reason },
      'applications and builds together may use all memory and all processes of their machine: ' +
        'its control groups could not be set. The README of runtime-docker says what is missing'
    )
  }
}

/** Takes the groups of an installation away that has no container any more. */
async function liftGroups(tools: HostTools, groups: ControlGroups): Promise<void> {
  await tools.run(['sh', '-c', liftScript, 'sh', groups.all])
}

async function setLimits(
  tools: HostTools,
  groups: ControlGroups,
  projects: readonly string[]
): Promise<void> {
  const { output, errors } = await tools.run(['sh', '-c', factsScript, 'sh', groups.all])
  const facts = readFacts(output)
  if (facts === undefined) throw new Error(`the machine says of itself: ${(output + errors).slice(0, 500)}`)
  const steps = limitSteps(groups, groupLimits(groups, projects, facts), facts)
  const done = await tools.run(['sh', '-c', stepsScript], steps)
  if (done.code !== 0) throw new Error(`not done: ${(done.output + done.errors).trim().slice(0, 500)}`)
}
