import type { Bus, Clock, Log } from 'busbar/sdk'
import type { DeploymentStore } from '../records/deployment-store.js'
import { Cancelled } from './deploy-failure.js'

export const cancelTopic = 'cancel'
/** A signal can be lost; the row cannot. The same statement notes that this process still works on it. */
const lookEveryMs = 2000

interface CancelWatch {
  readonly signal: AbortSignal
  stop(): void
}

/** Aborts when a cancel of this deployment is in its row, whichever process wrote it. */
export function watchCancel(
  deploymentId: string,
  {
    bus,
    clock,
    store,
    log
  }: {
    readonly bus: Bus
    readonly clock: Clock
    readonly store: DeploymentStore
    readonly log: Log
  }
): CancelWatch {
  const controller = new AbortController()
  const look = async (): Promise<void> => {
    try {
      if (await store.touch(deploymentId, clock.now())) controller.abort(new Cancelled())
    } catch (error) {
      log.warn({ err: error, deploymentId }, 'could not see whether the deployment is to be cancelled')
    }
  }
  const stops = [
    bus.onSignal(cancelTopic, cancelled => {
      if (cancelled === deploymentId) void look()
    }),
    clock.every(lookEveryMs, look)
  ]
  return {
    signal: controller.signal,
    stop() {
      for (const stop of stops) stop()
    }
  }
}
