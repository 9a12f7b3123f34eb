import type { ContainerRuntime, MeasuringLimits, Owner } from 'busbar/api/containers'
import type { BuildFileUse, BuildUsage, ImageService } from 'busbar/api/images'
import { type Clock, type Log, settleAll, withTimeLimit } from 'busbar/sdk'
import { engineVolumePath } from './engine-program.js'

interface UsageParts {
  readonly runtime: Pick<ContainerRuntime, 'exec' | 'fileUse'>
  readonly clock: Clock
  /** Removes from the engine of a project what no build uses. */
  readonly prune: (projectId: string) => Promise<void>
  readonly log: Pick<Log, 'warn'>
}

/** What is known of a build in a build engine beside what any build has. */
interface EngineHolding {
  /** Its part of all that its engine holds, which was there before, too. */
  readonly heldBytes?: number
}
export type EngineBuildUsage = BuildUsage &
  EngineHolding & {
    /** Its engine has so many files that what is written in it cannot be measured. */
    readonly isUncountable?: boolean
  }
export type EngineFileUse = BuildFileUse & EngineHolding

interface Measured {
  readonly owner: Owner
  /** What its engine held when that was measured last; undefined: not since the build began. */
  engineBytes: number | undefined
  /** Its share of what was written since. */
  bytes: number
}

/** An engine in which builds run. */
interface Measuring {
  readonly containerId: string
  readonly projectId: string | undefined
  readonly builds: Set<Measured>
  walking: Promise<void> | undefined
  walkAfter: number
  /** As last measured. */
  bytes: number | undefined
  isUncountable: boolean
}

/** A walk through all that a build engine holds: longer than this, and what was measured last has to do. */
const walkMs = 20_000
/** How many files there are at least is known by then: their names have just been read. */
const namesMs = 5000
/** Who has fewer has a slow machine. */
const manyNames = 250_000
/** The engine looks at each file meanwhile. */
const walkingShare = 0.2
/** Usually it is done by then. */
const patienceMs = 400
/** For a program in the container to be started, and to end. */
const besidesMs = 5000
/** What `timeout` ends with where the time is over, by whose it is. */
const lateCodes: readonly number[] = [124, 137, 143]

/** Its client can be left, not ended: it would go on, and another one begin. */
const seconds = (ms: number): string => String(Math.ceil(ms / 1000))

/** What builds write that run in build engines. Each engine is measured on its own: one with many files does not keep others from it. */
export class EngineUsage {
  /** By container. */
  readonly #engines = new Map<string, Measuring>()
  /** By project, as last measured. */
  readonly #held = new Map<string, number>()

  constructor(private readonly parts: UsageParts) {}

  /** Measures what a build writes while it runs. */
  async during<T>(
    { owner, containerId }: { readonly owner: Owner; readonly containerId: string },
    run: () => Promise<T>
  ): Promise<T> {
    const measured: Measured = { owner, engineBytes: undefined, bytes: 0 }
    const engine = this.#engines.get(containerId) ?? {
      containerId,
      projectId: owner.projectId,
      builds: new Set(),
      walking: undefined,
      walkAfter: 0,
      bytes: undefined,
      isUncountable: false
    }
    this.#engines.set(containerId, engine)
    engine.builds.add(measured)
    try {
      return await run()
    } finally {
      engine.builds.delete(measured)
      if (engine.builds.size === 0) this.#engines.delete(containerId)
      // What it has used can go by now.
      if (engine.isUncountable) void this.#prune(engine)
    }
  }

  /** Of each build, as last measured: an engine with many files must not keep others from being measured. */
  async read(): Promise<readonly EngineBuildUsage[]> {
    const now = performance.now()
    const engines = [...this.#engines.values()]
    for (const engine of engines) if (now >= engine.walkAfter) engine.walking ??= this.#measure(engine)
    const done = new AbortController()
    await Promise.race([
      Promise.all(engines.map(({ walking }) => walking)),
      this.parts.clock.sleep(patienceMs, done.signal).catch(() => {})
    ])
    done.abort()
    return [...this.#engines.values()].flatMap(({ builds, bytes: held = 0, isUncountable }) =>
      [...builds].map(({ owner, bytes }) => ({
        owner,
        bytes,
        // Its layers are where they stay.
        runningStepBytes: 0,
        isPartial: true,
        heldBytes: Math.ceil(held / builds.size),
        isUncountable
      }))
    )
  }

  /** What the engine of a project holds, as last measured while builds ran in it. */
  heldBy(projectId: string): number | undefined {
    return this.#held.get(projectId)
  }

  /** Of each build, its part of what its engine holds; those that share one are of one project. */
  async readFiles(options: Parameters<ImageService['buildFileUse']>[0]): Promise<readonly EngineFileUse[]> {
    return (
      await settleAll([...this.#engines.values()].map(async engine => await this.#filesOf(engine, options)))
    ).flat()
  }

  async #filesOf(
    { containerId, projectId, builds, bytes: lastBytes }: Measuring,
    options: Parameters<ImageService['buildFileUse']>[0]
  ): Promise<readonly EngineFileUse[]> {
    if (projectId === undefined) return []
    const [held, inodes, volumeBytes] = await settleAll([
      this.parts.runtime.fileUse({ projectId }, { ...options, since: new Date(0) }),
      this.#inodes(containerId, options),
      this.#walk(containerId, options.eachMs).then(({ bytes }) => bytes)
    ])
    const own = held.find(({ id }) => id === containerId)
    const part = (...numbers: readonly (number | undefined)[]): number =>
      Math.ceil(numbers.reduce<number>((sum, number) => sum + (number ?? 0), 0) / Math.max(1, builds.size))
    return [...builds].map(({ owner, bytes }) => ({
      owner,
      bytes: bytes + part(own?.bytes, own?.namelessBytes),
      inodes: part(inodes, own?.inodes),
      // By then what no build uses has gone, so all of it is in use, or was written just now.
      heldBytes: part(volumeBytes ?? lastBytes, own?.bytes, own?.namelessBytes),
      isCut: own?.isCut !== false || inodes === undefined || volumeBytes === undefined
    }))
  }

  /** Of its cache, those that were there before the build, too. */
  async #inodes(containerId: string, { eachMs }: MeasuringLimits): Promise<number | undefined> {
    const { number } = await this.#number(containerId, {
      ms: eachMs,
      argv: ['sh', '-c', 'timeout "$1" find "$0" -xdev | wc -l', engineVolumePath, seconds(eachMs)]
    })
    return number
  }

  async #measure(engine: Measuring): Promise<void> {
    const begunAt = performance.now()
    const { bytes, isLate } = await this.#walk(engine.containerId, walkMs)
    if (bytes !== undefined) {
      engine.isUncountable = false
      this.#share(engine, bytes)
    } else if (isLate) await this.#noteLate(engine)
    const now = performance.now()
    engine.walkAfter = now + (now - begunAt) / walkingShare
    engine.walking = undefined
  }

  /** What is written in it is not seen any more. With few files it is the machine that is slow. */
  async #noteLate(engine: Measuring): Promise<void> {
    const names = (await this.#inodes(engine.containerId, { eachMs: namesMs, allMs: namesMs })) ?? Infinity
    engine.isUncountable = names >= manyNames
    await this.#prune(engine)
  }

  async #prune({ projectId, containerId }: Measuring): Promise<void> {
    if (projectId === undefined) return
    this.parts.log.warn(
      { projectId, containerId },
      'a build engine has more files than can be counted in time: its cache is cleared'
    )
    await this.parts.prune(projectId).catch((error: unknown) => {
      this.parts.log.warn({ err: error, projectId }, 'the cache of a build engine could not be cleared')
    })
  }

  /**
   * Builds of one project share an engine, which does not say who wrote what: each of those that were there has an equal part of
   * what was added, so that together they have what was written.
   */
  #share(engine: Measuring, engineBytes: number): void {
    const builds = [...engine.builds]
    const writers = builds.filter(build => build.engineBytes !== undefined).length
    engine.bytes = engineBytes
    if (engine.projectId !== undefined) this.#held.set(engine.projectId, engineBytes)
    for (const build of builds) {
      // What a build clears first makes no room for more than it may write.
      if (build.engineBytes !== undefined)
        build.bytes = Math.max(0, build.bytes + Math.ceil((engineBytes - build.engineBytes) / writers))
      build.engineBytes = engineBytes
    }
  }

  async #walk(
    containerId: string,
    ms: number
  ): Promise<{ readonly bytes: number | undefined; readonly isLate: boolean }> {
    // Mounted root file systems of steps are seen where they are kept.
    const { number, isLate } = await this.#number(containerId, {
      ms,
      argv: ['timeout', seconds(ms), 'du', '-skx', engineVolumePath]
    })
    return { bytes: number === undefined || isLate ? undefined : number * 1024, isLate }
  }

  /** Without a number where it cannot be told: the container has ended, or has more files than can be walked through in time. */
  async #number(
    containerId: string,
    { ms, argv }: { readonly ms: number; readonly argv: readonly string[] }
  ): Promise<{ readonly number: number | undefined; readonly isLate: boolean }> {
    const lines: string[] = []
    const limit = new AbortController()
    let code: number
    try {
      code = await withTimeLimit({ ms: ms + besidesMs, clock: this.parts.clock }, async signal => {
        signal.addEventListener('abort', () => limit.abort(), { once: true })
        return await this.parts.runtime.exec(containerId, argv, {
          signal,
          onLine: ({ stream, text }) => {
            if (stream === 'stdout' && lines.length < 10) lines.push(text)
          }
        })
      })
    } catch {
      return { number: undefined, isLate: limit.signal.aborted }
    }
    const number = Number.parseInt(lines.at(-1) ?? '', 10)
    return { number: Number.isNaN(number) ? undefined : number, isLate: lateCodes.includes(code) }
  }
}
