import type { ContainerRuntime, ContainerStats } from 'busbar/api/containers'
import { bounded, type Clock, FairQueue, isProblem, type OptionalHandle } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { ApplicationContainers } from './application-containers.js'
import type { RunningApplication } from './application-store.js'
import { type ContainerUsage, ratesBetween, usageOf } from './container-usage.js'

/**
 * Engines take up to a second for a sample, in which they do next to nothing: so many are waited for at a time, of one project
 * no more than half of them.
 */
const measuredAtOnce = { most: 64, maxPerOwner: 32 }
/** Longer than any engine takes that is well. */
const sampleMs = 10_000
/** Between two samples, where there was none before. */
const betweenMs = 1000
/** A sample from before that says nothing of now. */
const longestBetweenMs = 300_000
/** Some megabytes; of what is forgotten two samples are taken. */
const mostKnown = 20_000

interface ApplicationSamplesParts {
  readonly runtime: OptionalHandle<Pick<ContainerRuntime, 'stats'>>
  readonly containers: ApplicationContainers
  readonly clock: Clock
}

/** A sample, and the container that it is of. */
export interface Sample {
  readonly containerId: string
  /** By the platform's clock; that of the engine's machine may be another. */
  readonly takenAt: Date
  readonly stats: ContainerStats
}

/** The latest, and the one before that tells with it how fast something grows. */
interface Known {
  readonly takenAt: Date
  /** By `Clock.elapsed`. */
  readonly keptAt: number
  readonly before: ContainerStats | undefined
  readonly latest: ContainerStats
}

interface Waiting {
  readonly resolve: (sample: Sample | undefined) => void
  readonly reject: (error: unknown) => void
}

/** Samples of the containers of applications, shared by all who want them: one that is being taken is waited for. */
export class ApplicationSamples {
  /** By container. */
  readonly #known = new Map<string, Known>()
  /** By application: who waits for the sample that is being taken, or waits for its turn. */
  readonly #waiting = new Map<string, Waiting[]>()
  readonly #applications = new Map<string, RunningApplication>()
  readonly #queue = new FairQueue(measuredAtOnce)

  constructor(private readonly parts: ApplicationSamplesParts) {}

  /** Undefined where no container runs; rejects where the engine does not answer. */
  async sample(application: RunningApplication): Promise<Sample | undefined> {
    const { id, projectId } = application
    return await new Promise((resolve, reject) => {
      this.#applications.set(id, application)
      const waiting = this.#waiting.get(id)
      if (waiting !== undefined) {
        waiting.push({ resolve, reject })
        return
      }
      this.#waiting.set(id, [{ resolve, reject }])
      this.#queue.add({ owner: projectId, id })
      this.#begin()
    })
  }

  /**
   * What it uses now, by the sample before where there is one of the last minutes, else by two a second apart. Undefined where
   * no container runs, or it was started anew meanwhile; rejects where the engine does not answer.
   */
  async usage(application: RunningApplication, signal?: AbortSignal): Promise<ContainerUsage | undefined> {
    const first = await this.sample(application)
    if (first === undefined) return undefined
    const usage = this.#usageOf(first)
    if (usage !== undefined) return usage
    await this.parts.clock.sleep(betweenMs, signal)
    const second = await this.sample(application)
    return second === undefined ? undefined : this.#usageOf(second)
  }

  /** What a container used when it was measured last; undefined where that is longer ago, or not known. */
  recent(containerId: string, maxAgeMs: number): ContainerUsage | undefined {
    const known = this.#known.get(containerId)
    if (known === undefined || this.parts.clock.elapsed() - known.keptAt > maxAgeMs) return undefined
    return this.#usageOf({ containerId, takenAt: known.takenAt, stats: known.latest })
  }

  #usageOf({ containerId, takenAt, stats }: Sample): ContainerUsage | undefined {
    const before = this.#known.get(containerId)?.before
    const rates = before === undefined ? undefined : ratesBetween(before, stats)
    return rates === undefined ? undefined : usageOf(stats, rates, takenAt)
  }

  #begin(): void {
    for (let turn = this.#queue.take(); turn !== undefined; turn = this.#queue.take()) void this.#take(turn)
  }

  /** Never rejects. */
  async #take(turn: { readonly owner: string; readonly id: string }): Promise<void> {
    const { id } = turn
    const application = this.#applications.get(id)
    const settle = await this.#measure(application).then(
      sample => (one: Waiting) => {
        one.resolve(sample)
      },
      (error: unknown) => (one: Waiting) => {
        one.reject(error)
      }
    )
    const waiting = this.#waiting.get(id) ?? []
    // Who asks from now on has another sample taken.
    this.#waiting.delete(id)
    this.#applications.delete(id)
    this.#queue.end(turn)
    waiting.forEach(settle)
    this.#begin()
  }

  async #measure(application: RunningApplication | undefined): Promise<Sample | undefined> {
    if (application === undefined) return undefined
    const { containers, runtime, clock } = this.parts
    try {
      return await bounded(
        async () => {
          const containerId = await containers.find(application)
          if (containerId === undefined) return undefined
          const engine = runtime.get()
          if (engine === undefined) throw problems.containersOff()
          const stats = await engine.stats(containerId)
          const sample = { containerId, takenAt: clock.now(), stats }
          this.#keep(sample)
          return sample
        },
        { ms: sampleMs, what: 'the measurement of a container' }
      )
    } catch (error) {
      if (!isOfEnd(error)) throw error
      containers.forget(application.id)
      return undefined
    }
  }

  #keep({ containerId, takenAt, stats: latest }: Sample): void {
    const known = this.#known.get(containerId)
    const before = [known?.latest, known?.before].find(
      one =>
        one !== undefined &&
        latest.at.getTime() - one.at.getTime() <= longestBetweenMs &&
        ratesBetween(one, latest) !== undefined
    )
    // What was measured last is the last to be forgotten.
    this.#known.delete(containerId)
    this.#known.set(containerId, { takenAt, keptAt: this.parts.clock.elapsed(), before, latest })
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= mostKnown) break
      this.#known.delete(oldest)
    }
  }
}

/** Containers come and go between two looks: that one is gone, or does not run, is no failure. */
const isOfEnd = (error: unknown): boolean =>
  isProblem(error) && (error.code === 'E_CONTAINER_MISSING' || error.code === 'E_CONTAINER_NOT_RUNNING')
