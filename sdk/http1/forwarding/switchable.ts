import { createSwitchMeter, type SwitchMeter } from './switch-meter.js'
import { createUpstream, type ForwardTarget, type Upstream } from './upstream.js'

/** What a switch did to the traffic, from then until the end of the drain. */
export interface ForwardSwitchProof {
  readonly served: number
  readonly failed: number
  readonly longestGapMs: number
  readonly drainMs: number
  /** Requests and sockets still open on the container of before when the time was up. */
  readonly cut: number
}

/** A switch that has been made. */
export interface ForwardSwitch {
  /** Resolves when nothing is under way on the container of before, after `timeoutMs` at the latest. */
  drain(timeoutMs: number): Promise<ForwardSwitchProof>
}

/** Where the requests of one application go; changed between two requests. */
export interface Switchable {
  readonly meter: SwitchMeter
  /** Null while it does not run. */
  readonly target: ForwardTarget | null
  current(): Upstream | null
  /** From now on new requests go to `target`. What is under way elsewhere finishes there. */
  switchTo(target: ForwardTarget): ForwardSwitch
  /** The same without being watched: the container has moved or is gone. */
  retarget(target: ForwardTarget | null): void
}

/** Begins with `target`. */
export function createSwitchable(target: ForwardTarget | null): Switchable {
  let current: Upstream | null = target === null ? null : createUpstream(target)
  const meter = createSwitchMeter()
  return {
    meter,
    current: () => current,
    get target() {
      return current?.target ?? null
    },

    retarget(next) {
      if (next !== null && current !== null && isSameTarget(next, current.target)) return
      const previous = current
      current = next === null ? null : createUpstream(next)
      previous?.retire()
    },

    switchTo(next) {
      const previous = current
      const watch = meter.watch()
      const switchedAt = performance.now()
      current = createUpstream(next)
      previous?.retire()
      return {
        async drain(timeoutMs) {
          const cut = (await previous?.drained(timeoutMs)) ?? 0
          const { served, failed, longestGapMs } = watch.end()
          return {
            served,
            failed,
            longestGapMs: Math.round(longestGapMs),
            drainMs: Math.round(
              (previous === null ? switchedAt : (previous.emptyAt ?? performance.now())) - switchedAt
            ),
            cut
          }
        }
      }
    }
  }
}

/** Whether both are the same container at the same address. */
export const isSameTarget = (a: ForwardTarget, b: ForwardTarget): boolean =>
  a.host === b.host &&
  a.port === b.port &&
  a.containerId === b.containerId &&
  a.deploymentId === b.deploymentId
