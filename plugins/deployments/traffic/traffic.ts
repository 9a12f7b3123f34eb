import { bounded, type Contributions, isProblem, type Log, settleAll } from 'busbar/sdk'
import {
  hookLimitMs,
  type SwitchProof,
  type TrafficRouter,
  type TrafficSwitch,
  type TrafficTarget
} from '../api.js'
import { DeployFailure } from '../rollout/deploy-failure.js'
import { proofOf } from './switch-proof.js'

interface TrafficParts {
  readonly routers: Contributions<TrafficRouter>
  readonly log: Log
  /** How long each call of a router may take. */
  readonly limitMs?: number
}

/** Undefined where no router has told what the switch did. Never rejects. */
export type Drain = (timeoutMs: number) => Promise<SwitchProof | undefined>

interface Reverted {
  readonly drain: Drain
  /** Undefined when every router has done it. */
  readonly fault: unknown
}

/** A router at one moment; the plugin may have been reloaded since, or be off. */
export type FoundRouter = ReturnType<Contributions<TrafficRouter>['entries']>[number]

/** The answer of a call, or that the router's plugin is off. */
type Outcome<T> = { readonly isOff: false; readonly answer: T } | { readonly isOff: true }

/**
 * All traffic routers as one: those that plugins contribute, in the order of their
 * keys. They come and go while deploys are under way.
 */
export class Traffic {
  readonly #parts: TrafficParts
  constructor(parts: TrafficParts) {
    this.#parts = parts
  }

  /** Those that are there now. */
  routers(): readonly FoundRouter[] {
    return this.#parts.routers.entries().toSorted((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Whether others are there now, or newer versions of them, which may not know of a switch that was made meanwhile. */
  hasChanged(since: readonly FoundRouter[]): boolean {
    const now = this.routers()
    return now.length !== since.length || now.some(({ value }, index) => value !== since[index]?.value)
  }

  /** Side by side. The answers are warnings: by which of them the application cannot be reached, and why. */
  async prepare(routers: readonly FoundRouter[], applicationId: string): Promise<readonly string[]> {
    const outcomes = await settleAll(
      routers.map(async router => await this.#call(router, 'prepare', one => one.prepare(applicationId)))
    )
    return outcomes.flatMap(outcome =>
      outcome.isOff || typeof outcome.answer !== 'string' ? [] : outcome.answer
    )
  }

  /** Requests go to `target` from now on; undefined when the plugin of the router is off. */
  async switchTo(
    router: FoundRouter,
    applicationId: string,
    target: TrafficTarget
  ): Promise<Drain | undefined> {
    const outcome = await this.#call(router, 'switch', one => one.switchTo(applicationId, target))
    return outcome.isOff ? undefined : this.#drainOf(router, outcome.answer)
  }

  /** The last first, and all of them whatever one throws; never rejects. */
  async revert(
    routers: readonly FoundRouter[],
    applicationId: string,
    target: TrafficTarget | null
  ): Promise<Reverted> {
    const drains: Drain[] = []
    const faults: unknown[] = []
    for (const router of routers.toReversed()) {
      try {
        const outcome = await this.#call(router, 'revert', one => one.revert(applicationId, target))
        if (!outcome.isOff) drains.push(this.#drainOf(router, outcome.answer))
      } catch (error) {
        faults.push(error)
      }
    }
    return {
      drain: together(drains),
      fault: faults.length < 2 ? faults[0] : new AggregateError(faults, sentenceOf(faults))
    }
  }

  /** The proof of what has been switched already does not depend on whether it can be told. */
  #drainOf({ plugin }: FoundRouter, made: TrafficSwitch | null | undefined): Drain {
    const { log, limitMs = hookLimitMs } = this.#parts
    return async timeoutMs => {
      if (made === null || made === undefined) return undefined
      try {
        const what = `${named(plugin)} (drain)`
        return proofOf([await bounded(() => made.drain(timeoutMs), { ms: limitMs, what })])
      } catch (error) {
        log.warn({ err: error, plugin }, 'what a switch did to the traffic is not known of one router')
        return undefined
      }
    }
  }

  /** Made to whichever version of the plugin is there; again when another one has taken its place meanwhile. */
  async #call<T>(
    { key, plugin }: FoundRouter,
    what: 'prepare' | 'switch' | 'revert',
    work: (router: TrafficRouter) => Promise<T>
  ): Promise<Outcome<T>> {
    const { routers, limitMs = hookLimitMs } = this.#parts
    for (;;) {
      const router = routers.get(key)
      if (router === undefined) return { isOff: true }
      try {
        const answer = await bounded(() => work(router), { ms: limitMs, what: `${named(plugin)} (${what})` })
        return { isOff: false, answer }
      } catch (error) {
        // The answer of a version that was stopped meanwhile does not count.
        if (routers.get(key) === router) throw failureOf(error, plugin)
      }
    }
  }
}

const named = (plugin: string): string => `the traffic router of the plugin "${plugin}"`

/** All at the same time. */
export const together =
  (drains: readonly Drain[]): Drain =>
  async timeoutMs => {
    const proofs = await Promise.all(drains.map(async drain => await drain(timeoutMs)))
    return proofOf(proofs.filter(proof => proof !== undefined))
  }

/** Names the plugin, whatever it threw. */
function failureOf(error: unknown, plugin: string): Error {
  const message = error instanceof Error ? error.message : String(error)
  const text = message.startsWith(named(plugin)) ? message : `${named(plugin)}: ${message}`
  return isProblem(error) ? new DeployFailure(text) : new Error(text, { cause: error })
}

const sentenceOf = (faults: readonly unknown[]): string =>
  faults.map(fault => (fault instanceof Error ? fault.message : String(fault))).join('; ')
