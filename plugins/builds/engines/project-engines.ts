import type { ContainerCaps, ContainerRuntime, ContainerState } from 'busbar/api/containers'
import { type Clock, isProblem, type Log, Serial, withTimeLimit } from 'busbar/sdk'
import { type BuildLimits, builderVolumePrefix, type EngineCommand, type EngineProgram } from '../api.js'
import type { EngineKinds } from './engine-kinds.js'
import { removeLeftovers } from './engine-leftovers.js'
import { containerName, programOf, volumeName } from './engine-names.js'
import { buildEngineProblems } from './engine-problems.js'
import { engineVolumePath, entrypoint } from './engine-program.js'
import { readyMs, untilReady } from './engine-readiness.js'
import type { EngineRecords } from './engine-store.js'
import { daemonMemoryBytes, daemonProcesses, limitSteps } from './steps-group.js'
import { limitStepsNetwork } from './steps-network.js'

interface ProjectEnginesParts {
  readonly runtime: ContainerRuntime
  readonly clock: Clock
  readonly log: Log
  readonly records: Pick<EngineRecords, 'used' | 'stopped' | 'removed' | 'live'>
  readonly kinds: Pick<EngineKinds, 'programs'>
  /** What one keeps for the next builds of its project. */
  readonly cacheBytes: number
}

/** What a project's build engine is to be. */
interface WantedProjectEngine {
  readonly projectId: string
  readonly program: EngineProgram
  /** Its id on the engine of the platform: a name may come to mean a newer one. */
  readonly image: string
  /**
   * No other program will do: where builds are under way in another one, they are waited for. Called before that, with what they
   * use.
   */
  readonly onWait?: (current: EngineProgram) => void
}

interface EngineBuild {
  readonly deploymentId: string
  readonly limits: BuildLimits
}

const processesOfBuild = 4096
const waitLookMs = 250
const stopGraceSeconds = 10
const pruneMs = 60_000

export interface StartedEngine {
  readonly containerId: string
  readonly program: EngineProgram
  /** The build could not clean up after itself: that is done before the next one, or by `tidy`. */
  readonly noteLeftovers: () => void
  /** The daemon may go on with a build that was ended: it is stopped once nobody uses it. */
  readonly noteUnheard: () => void
}

interface ProjectEngine {
  readonly serial: Serial
  /** What its container is while builds use it. */
  current: WantedProjectEngine | undefined
  /** The builds that use it now, or are about to. */
  readonly users: Set<EngineBuild>
  /** Of these, those that have begun in it. */
  readonly inside: Set<EngineBuild>
  /** Builds begin in the order in which they came, so that none waits for ever for those of another kind to end. */
  readonly entry: Serial
  /** A build has ended and could not clean up after itself. */
  isUntidy: boolean
  /** Its daemon may go on with what has ended. */
  isUnheard: boolean
}

/**
 * The build engines of this installation: a container for each project that builds, with a volume for its cache. They start with
 * the first build and stop some time after the last. Their caps are those of the builds that run in them.
 */
export class ProjectEngines {
  readonly #engines = new Map<string, ProjectEngine>()

  constructor(private readonly parts: ProjectEnginesParts) {}

  /**
   * Runs a build in the engine of its project. Builds that run at the same time share one, so `run` is told which program it
   * has. It rejects with 503 E_BUILD_ENGINE where that does not start.
   */
  async use<T>(
    wanted: WantedProjectEngine,
    build: EngineBuild,
    signal: AbortSignal,
    run: (engine: StartedEngine) => Promise<T>
  ): Promise<T> {
    const engine = this.#engineOf(wanted.projectId)
    engine.users.add(build)
    const leave = async (): Promise<void> => await this.#leave(wanted.projectId, engine, build)
    const turn = engine.entry.run(async () => await this.#enter(wanted, engine, build, signal))
    const started = await unlessAborted(turn, signal).catch(async (error: unknown) => {
      const left = turn.then(leave, leave)
      // A former one may be on its way out, which takes minutes: a build that is ended holds up nobody meanwhile.
      if (!signal.aborted) await left
      throw error
    })
    try {
      return await run(started)
    } finally {
      await leave()
    }
  }

  async #enter(
    wanted: WantedProjectEngine,
    engine: ProjectEngine,
    build: EngineBuild,
    signal: AbortSignal
  ): Promise<StartedEngine> {
    let isWaiting = false
    for (;;) {
      const started = await engine.serial.run(async () => {
        signal.throwIfAborted()
        // The setting may have changed since the others began.
        const current = engine.inside.size > 0 ? engine.current : undefined
        if (
          wanted.onWait !== undefined &&
          current !== undefined &&
          current.program.kind !== wanted.program.kind
        ) {
          if (!isWaiting) wanted.onWait(current.program)
          return undefined
        }
        await this.parts.records.used(wanted.projectId)
        const actual = current ?? wanted
        const containerId = await this.#startOrReplace(actual, engine, signal)
        signal.throwIfAborted()
        engine.current = actual
        engine.inside.add(build)
        return {
          containerId,
          program: actual.program,
          noteLeftovers: () => {
            engine.isUntidy = true
          },
          noteUnheard: () => {
            engine.isUnheard = true
          }
        }
      })
      if (started !== undefined) return started
      isWaiting = true
      await this.parts.clock.sleep(waitLookMs, signal)
    }
  }

  async #leave(projectId: string, engine: ProjectEngine, build: EngineBuild): Promise<void> {
    engine.users.delete(build)
    engine.inside.delete(build)
    await this.parts.records.used(projectId).catch(() => {})
    if (engine.users.size > 0) await this.#adapt(projectId, engine).catch(() => {})
    else if (engine.isUnheard) await this.#halt(projectId, engine)
    // One in which something is always being built is never stopped, and is to keep no more than others.
    await engine.serial
      .run(async () => await this.#pruneRunning(projectId, this.parts.cacheBytes))
      .catch((error: unknown) => this.#noteUntrimmed(projectId, error))
    this.#forget(projectId, engine)
  }

  /** The next build starts it again, with its cache. */
  async #halt(projectId: string, engine: ProjectEngine): Promise<void> {
    await engine.serial
      .run(async () => {
        if (engine.users.size > 0) return
        for (const { id, status } of await this.#containers(projectId))
          if (status === 'running') await this.parts.runtime.stop(id, stopGraceSeconds)
        engine.isUnheard = false
      })
      .catch((error: unknown) =>
        this.parts.log.warn({ err: error, projectId }, 'a build engine may go on with a build that was ended')
      )
  }

  /** Of a project that is going: everything of its engine. */
  async remove(projectId: string): Promise<void> {
    const engine = this.#engineOf(projectId)
    await engine.serial.run(async () => await this.#discard(projectId))
    this.#forget(projectId, engine)
  }

  /** Unless a build of this process uses it. */
  async stop(projectId: string): Promise<void> {
    const engine = this.#engineOf(projectId)
    await engine.serial.run(async () => {
      if (engine.users.size > 0) return
      for (const { id, name, status } of await this.#containers(projectId)) {
        if (status !== 'running') continue
        await this.#tidy(projectId, id, this.#programOf(name), engine).catch((error: unknown) =>
          this.parts.log.warn(
            { err: error, projectId },
            'what builds have left in a build engine stays for now'
          )
        )
        await this.#prune(id, name, this.parts.cacheBytes).catch((error: unknown) =>
          this.#noteUntrimmed(projectId, error)
        )
        await this.parts.runtime.stop(id, stopGraceSeconds)
      }
      await this.parts.records.stopped(projectId)
    })
    this.#forget(projectId, engine)
  }

  /**
   * Removes all that builds in it have left for the next one. What builds use that are under way stays; the engine itself
   * is told to leave the rest.
   */
  async clear(projectId: string): Promise<void> {
    const engine = this.#engineOf(projectId)
    await engine.serial.run(async () => {
      if (engine.users.size === 0) await this.#discard(projectId)
      else await this.#pruneRunning(projectId, 0)
    })
    this.#forget(projectId, engine)
  }

  /** Of one that runs, what is beyond so many bytes and no build uses now. */
  async trim(projectId: string, keptBytes: number): Promise<void> {
    const engine = this.#engineOf(projectId)
    await engine.serial.run(async () => await this.#pruneRunning(projectId, keptBytes))
    this.#forget(projectId, engine)
  }

  /** Of this process, projects in whose engines ended builds have left something. */
  untidy(): readonly string[] {
    return [...this.#engines].flatMap(([projectId, { isUntidy }]) => (isUntidy ? [projectId] : []))
  }

  /** Ends and removes what builds have left for which nobody waits. */
  async tidy(projectId: string): Promise<void> {
    const engine = this.#engineOf(projectId)
    await engine.serial.run(async () => {
      for (const { id, name, status } of await this.#containers(projectId))
        if (status === 'running') await this.#tidy(projectId, id, this.#programOf(name), engine)
      engine.isUntidy = false
    })
    this.#forget(projectId, engine)
  }

  /** With its cache, unless a build of this process uses it; whether it is gone. */
  async removeUnused(projectId: string): Promise<boolean> {
    const engine = this.#engineOf(projectId)
    const isGone = await engine.serial.run(async () => {
      if (engine.users.size > 0) return false
      await this.#discard(projectId)
      return true
    })
    this.#forget(projectId, engine)
    return isGone
  }

  /** What each of this installation has written, by project, its cache with it. The engine walks through all its volumes for it. */
  async sizes(): Promise<ReadonlyMap<string, number>> {
    return new Map(
      (await this.parts.runtime.volumes({}))
        .filter(({ name }) => name.startsWith(builderVolumePrefix))
        .map(({ name, sizeBytes }) => [name.slice(builderVolumePrefix.length), sizeBytes])
    )
  }

  /** What it has written, its cache with it; 0 where there is none. */
  async bytes(projectId: string): Promise<number> {
    const volumes = await this.parts.runtime.volumes({ projectId })
    return volumes.find(({ name }) => name === volumeName(projectId))?.sizeBytes ?? 0
  }

  #engineOf(projectId: string): ProjectEngine {
    const known = this.#engines.get(projectId)
    if (known !== undefined) return known
    const engine = {
      serial: new Serial(),
      users: new Set<EngineBuild>(),
      inside: new Set<EngineBuild>(),
      entry: new Serial(),
      current: undefined,
      isUntidy: false,
      isUnheard: false
    }
    this.#engines.set(projectId, engine)
    return engine
  }

  /** What has no users holds nothing that is worth keeping. */
  #forget(projectId: string, engine: ProjectEngine): void {
    if (engine.users.size === 0 && !engine.isUntidy && this.#engines.get(projectId) === engine)
      this.#engines.delete(projectId)
  }

  #noteUntrimmed(projectId: string, error: unknown): void {
    this.parts.log.warn({ err: error, projectId }, 'the cache of a build engine could not be trimmed')
  }

  async #pruneRunning(projectId: string, keptBytes: number): Promise<void> {
    for (const { id, name, status } of await this.#containers(projectId))
      if (status === 'running') await this.#prune(id, name, keptBytes)
  }

  async #prune(containerId: string, name: string, keptBytes: number): Promise<void> {
    const { runtime, clock, log } = this.parts
    const program = this.#programOf(name)
    if (program === undefined) return
    const { argv, env } = program.prune(keptBytes)
    const code = await withTimeLimit({ clock, ms: pruneMs }, async signal =>
      runtime.exec(containerId, argv, { env, signal, onLine: () => {} })
    )
    if (code !== 0) log.warn({ containerId, code }, 'the cache of a build engine could not be cleared')
  }

  #programOf(containerName: string): EngineProgram | undefined {
    return programOf(containerName, this.parts.kinds.programs())
  }

  async #tidy(
    projectId: string,
    containerId: string,
    program: EngineProgram | undefined,
    { users }: ProjectEngine
  ): Promise<void> {
    // Those of this process are under way, whether it could say so or not.
    const own = [...users].map(({ deploymentId }) => deploymentId)
    const live = [...new Set([...(await this.parts.records.live(projectId)), ...own])]
    await this.#tell(containerId, { argv: removeLeftovers(live), env: {} })
    const forgetting = program?.forget?.(live)
    if (forgetting !== undefined) await this.#tell(containerId, forgetting)
  }

  async #discard(projectId: string): Promise<void> {
    const { runtime, records } = this.parts
    for (const { id } of await this.#containers(projectId)) await runtime.remove(id)
    await runtime.removeVolume(volumeName(projectId)).catch((error: unknown) => {
      if (isProblem(error) && error.code === 'E_VOLUME_NOT_EMPTIED')
        throw buildEngineProblems.notEmptied({ reason: error.message })
      throw error
    })
    await records.removed(projectId)
  }

  async #containers(projectId: string): Promise<readonly ContainerState[]> {
    return (await this.parts.runtime.list({ projectId })).filter(({ owner }) => isEngine(owner))
  }

  /** One that does not start, as its disk was full or its data are damaged, is made anew, without its cache. */
  async #startOrReplace(
    wanted: WantedProjectEngine,
    engine: ProjectEngine,
    signal: AbortSignal
  ): Promise<string> {
    try {
      return await this.#start(wanted, engine, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (engine.inside.size > 0 || !isProblem(error) || error.code !== 'E_BUILD_ENGINE') throw error
      const { projectId } = wanted
      this.parts.log.warn(
        { err: error, projectId },
        'a build engine does not start: it is made anew, without its cache'
      )
      await this.#discard(projectId)
      return await this.#start(wanted, engine, signal)
    }
  }

  async #start(wanted: WantedProjectEngine, engine: ProjectEngine, signal: AbortSignal): Promise<string> {
    const { runtime } = this.parts
    const found = await this.#containers(wanted.projectId)
    const name = containerName(wanted)
    const usable = found.find(container => container.name === name && container.image === wanted.image)
    const running = found.filter(({ status }) => status === 'running')
    // Of another kind, or of an older image: no two may have the same volume.
    for (const { id } of found.filter(({ id }) => id !== usable?.id)) await runtime.remove(id)
    let id = usable?.id ?? (await this.#create(wanted, engine))
    const isRunning = running.some(container => container.id === id)
    if (!isRunning)
      await runtime.start(id).catch(async (error: unknown) => {
        // It was made in a network, from an image, with limits that may be gone since. Its cache is in its volume.
        if (usable === undefined || signal.aborted) throw error
        await runtime.remove(id)
        id = await this.#create(wanted, engine)
        await runtime.start(id)
      })
    await untilReady(this.parts, wanted.program, id, signal)
    await this.#tell(id, plain(limitStepsNetwork))
    if (!isRunning || engine.isUntidy) {
      await this.#tidy(wanted.projectId, id, wanted.program, engine)
      engine.isUntidy = false
    }
    try {
      await this.#limit(id, engine)
    } catch (error) {
      // Its daemon has more memory than it is to have from now on.
      if (!isProblem(error) || error.code !== 'E_ENGINE_REFUSED') throw error
      if (engine.inside.size > 0) return id
      await runtime.stop(id, stopGraceSeconds)
      await runtime.start(id)
      await untilReady(this.parts, wanted.program, id, signal)
      await this.#tell(id, plain(limitStepsNetwork))
      await this.#limit(id, engine)
    }
    return id
  }

  async #limit(containerId: string, engine: ProjectEngine): Promise<void> {
    const caps = capsOf(engine)
    await this.parts.runtime.setCaps(containerId, caps)
    await this.#tell(containerId, plain(limitSteps(caps)))
  }

  /** What is set within the container. */
  async #tell(containerId: string, { argv, env }: EngineCommand): Promise<void> {
    const { runtime, clock } = this.parts
    const lines: string[] = []
    const code = await withTimeLimit({ clock, ms: readyMs }, async signal =>
      runtime.exec(containerId, argv, { env, signal, onLine: ({ text }) => lines.push(text) })
    )
    if (code !== 0)
      throw buildEngineProblems.away({
        reason: `it cannot be set up: ${lines.slice(0, 5).join(' ').slice(0, 400)}`
      })
  }

  async #create({ projectId, program, image }: WantedProjectEngine, engine: ProjectEngine): Promise<string> {
    const { runtime } = this.parts
    const owner = { projectId }
    const volume = volumeName(projectId)
    const [network] = await Promise.all([
      runtime.ensureBuildNetwork(projectId),
      runtime.ensureVolume(volume, owner)
    ])
    const { memoryBytes, cpus, processes } = capsOf(engine)
    return await runtime.create({
      name: containerName({ projectId, program }),
      image,
      owner,
      network,
      env: program.daemon.env,
      entrypoint: entrypoint(program),
      command: [],
      cpuLimit: cpus,
      memoryLimit: memoryBytes,
      processes,
      caps: 'standard',
      readonlyRootfs: false,
      runsContainers: true,
      restarts: false,
      volumes: [{ volume, path: engineVolumePath }]
    })
  }

  /** A build of several has ended. */
  async #adapt(projectId: string, engine: ProjectEngine): Promise<void> {
    await engine.serial.run(async () => {
      if (engine.users.size === 0) return
      for (const { id, status } of await this.#containers(projectId))
        if (status === 'running') await this.#limit(id, engine)
    })
  }
}

const capsOf = ({ users }: ProjectEngine): ContainerCaps => {
  const all = [...users].map(({ limits }) => limits)
  return {
    memoryBytes: all.reduce((sum, { memoryBytes }) => sum + memoryBytes, daemonMemoryBytes),
    cpus: all.reduce((sum, { cpus }) => sum + cpus, 0),
    processes: Math.max(1, all.length) * processesOfBuild + daemonProcesses
  }
}

/** No application's container and no database's. */
const isEngine = ({ applicationId, databaseId, deploymentId }: ContainerState['owner']): boolean =>
  applicationId === undefined && databaseId === undefined && deploymentId === undefined

const plain = (argv: readonly string[]): EngineCommand => ({ argv, env: {} })

/** Settles like the work, and rejects with the reason of the signal at once when that aborts; the work itself goes on. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = new AbortController()
  const aborted = new Promise<never>((_resolve, reject) => {
    const end = (): void => reject(signal.reason as Error)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true, signal: over.signal })
  })
  return await Promise.race([work, aborted]).finally(() => over.abort())
}
