import type { ContainerRuntime, MeasuringLimits, Owner } from 'busbar/api/containers'
import type { BuildFileUse, BuildUsage, ImageService } from 'busbar/api/images'
import { type Clock, withTimeLimit } from 'busbar/sdk'
import { engineVolumePath } from './engine-program.js'

interface UsageParts {
  readonly runtime: Pick<ContainerRuntime, 'exec' | 'fileUse'>
  readonly clock: Clock
}

interface Measured {
  readonly owner: Owner
  readonly containerId: string
  /** What its engine held when that was measured last; undefined: not since the build began. */
  engineBytes: number | undefined
  /** Its share of what was written since. */
  bytes: number
}

/** A walk through all that a build engine holds: longer than this, and what was measured last has to do. */
const walkMs = 20_000
/** The engine looks at each file meanwhile. */
const walkingShare = 0.2
/** Usually it is done by then. */
const patienceMs = 400

/** Its client can be left, not ended: it would go on, and another one begin. */
const seconds = (ms: number): string => String(Math.ceil(ms / 1000))

/** What builds write that run in build engines. */
export class EngineUsage {
  readonly #running = new Set<Measured>()
  #walking: Promise<void> | undefined
  #walkAfter = 0

  constructor(private readonly parts: UsageParts) {}

  /** Measures what a build writes while it runs. */
  async during<T>(build: Pick<Measured, 'owner' | 'containerId'>, run: () => Promise<T>): Promise<T> {
    const measured: Measured = { ...build, engineBytes: undefined, bytes: 0 }
    this.#running.add(measured)
    try {
      return await run()
    } finally {
      this.#running.delete(measured)
    }
  }

  /** Of each build, as last measured: an engine with many files must not keep others from being measured. */
  async read(): Promise<readonly BuildUsage[]> {
    if (this.#running.size > 0 && performance.now() >= this.#walkAfter) this.#walking ??= this.#measure()
    await Promise.race([this.#walking, this.parts.clock.sleep(patienceMs)])
    return [...this.#running].map(({ owner, bytes }) => ({
      owner,
      bytes,
      // Its layers are where they stay.
      runningStepBytes: 0,
      isPartial: true
    }))
  }

  /** Of each build, its part of what its engine holds; those that share one are of one project. */
  async readFiles(options: Parameters<ImageService['buildFileUse']>[0]): Promise<readonly BuildFileUse[]> {
    const uses: BuildFileUse[] = []
    for (const containerId of new Set([...this.#running].map(build => build.containerId))) {
      const builds = [...this.#running].filter(build => build.containerId === containerId)
      const projectId = builds[0]?.owner.projectId
      if (projectId === undefined) continue
      const [held, inodes] = await Promise.all([
        this.parts.runtime.fileUse({ projectId }, { ...options, since: new Date(0) }),
        this.#inodes(containerId, options)
      ])
      const own = held.find(({ id }) => id === containerId)
      const part = (...numbers: readonly (number | undefined)[]): number =>
        Math.ceil(numbers.reduce<number>((sum, number) => sum + (number ?? 0), 0) / builds.length)
      for (const { owner, bytes } of builds)
        uses.push({
          owner,
          bytes: bytes + part(own?.bytes, own?.namelessBytes),
          inodes: part(inodes, own?.inodes),
          isCut: own?.isCut !== false || inodes === undefined
        })
    }
    return uses
  }

  /** Of its cache, those that were there before the build, too. */
  async #inodes(containerId: string, { eachMs }: MeasuringLimits): Promise<number | undefined> {
    return await this.#number(containerId, {
      ms: eachMs,
      argv: ['sh', '-c', 'timeout "$1" find "$0" -xdev | wc -l', engineVolumePath, seconds(eachMs)]
    })
  }

  async #measure(): Promise<void> {
    const begunAt = performance.now()
    for (const containerId of new Set([...this.#running].map(build => build.containerId))) {
      const bytes = await this.#walk(containerId)
      if (bytes !== undefined) this.#share(containerId, bytes)
    }
    const now = performance.now()
    this.#walkAfter = now + (now - begunAt) / walkingShare
    this.#walking = undefined
  }

  /**
   * Builds of one project share an engine, which does not say who wrote what: each of those that were there has an equal part of
   * what was added, so that together they have what was written.
   */
  #share(containerId: string, engineBytes: number): void {
    const builds = [...this.#running].filter(build => build.containerId === containerId)
    const writers = builds.filter(build => build.engineBytes !== undefined).length
    for (const build of builds) {
      // What a build clears first makes no room for more than it may write.
      if (build.engineBytes !== undefined)
        build.bytes = Math.max(0, build.bytes + Math.ceil((engineBytes - build.engineBytes) / writers))
      build.engineBytes = engineBytes
    }
  }

  async #walk(containerId: string): Promise<number | undefined> {
    // Mounted root file systems of steps are seen where they are kept.
    const kilobytes = await this.#number(containerId, {
      ms: walkMs,
      argv: ['timeout', seconds(walkMs), 'du', '-skx', engineVolumePath]
    })
    return kilobytes === undefined ? undefined : kilobytes * 1024
  }

  /** Undefined where it cannot be told: the container has ended, or has more files than can be walked through in time. */
  async #number(
    containerId: string,
    { ms, argv }: { readonly ms: number; readonly argv: readonly string[] }
  ): Promise<number | undefined> {
    const lines: string[] = []
    try {
      await withTimeLimit({ ms, clock: this.parts.clock }, async signal => {
        await this.parts.runtime.exec(containerId, argv, {
          signal,
          onLine: ({ stream, text }) => {
            if (stream === 'stdout' && lines.length < 10) lines.push(text)
          }
        })
      })
    } catch {
      return undefined
    }
    const number = Number.parseInt(lines.at(-1) ?? '', 10)
    return Number.isNaN(number) ? undefined : number
  }
}
