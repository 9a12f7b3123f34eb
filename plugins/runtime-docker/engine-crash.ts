import type { ContainerEvent, EngineOutage } from 'busbar/api/containers'
import { type Clock, type Log, pause } from 'busbar/sdk'
import type Docker from 'dockerode'
import { restartPolicies } from './container-options.js'
import type { ContainerOwners } from './container-owners.js'
import type { EngineClient } from './engine-client.js'
import type { HeartbeatFile } from './heartbeat-file.js'
import type { OrphanEnder } from './host/orphan-ender.js'
import { instanceLabel } from './labels.js'

type Seen = Pick<Docker.ContainerInspectInfo, 'State'> & {
  readonly HostConfig: Pick<Docker.HostConfig, 'RestartPolicy'>
}

/**
 * Whether a container went down with the engine: it should run, and ended while the engine was away. A stop through
 * the platform takes the policy away first, a stop by hand is at another time. The restart policy itself does not
 * cover it (20.10): the engine notes every container that it stops itself at its start as stopped by hand.
 */
export function wentDownWithEngine(
  { State: state, HostConfig: { RestartPolicy: policy } }: Seen,
  { lostAt, backAt }: EngineOutage
): boolean {
  const isDown = state.Status === 'exited' || state.Status === 'dead'
  const endedAt = new Date(state.FinishedAt)
  return isDown && policy?.Name === restartPolicies.running.Name && endedAt >= lostAt && endedAt <= backAt
}

/** An engine that has only just come back may refuse what it does a moment later. */
const retryAfterMs = [500, 1000, 2000, 4000, 8000, 16_000] as const

interface Recovery {
  readonly runtime: {
    events(signal: AbortSignal): AsyncIterable<ContainerEvent>
    recover(outage: EngineOutage): Promise<void>
  }
  readonly heartbeat: Pick<HeartbeatFile, 'last' | 'start'>
  readonly clock: Pick<Clock, 'now' | 'sleep'>
  readonly log: Log
}

/** Whenever the engine is back, after what was lost with it; at first, after what it lost since an earlier platform died. */
export async function followCrashes(parts: Recovery, signal: AbortSignal): Promise<void> {
  const diedAt = await parts.heartbeat.last()
  const stopSigns = parts.heartbeat.start()
  try {
    await follow(parts, diedAt, signal)
  } finally {
    await stopSigns()
  }
}

async function follow(
  { runtime, clock, log }: Recovery,
  diedAt: Date | undefined,
  signal: AbortSignal
): Promise<void> {
  for await (const event of runtime.events(signal)) {
    if (event.kind !== 'resync') continue
    const outage =
      event.outage ?? (diedAt === undefined ? undefined : { lostAt: diedAt, backAt: clock.now() })
    diedAt = undefined
    if (outage === undefined) continue
    for (const waitMs of retryAfterMs) {
      try {
        await runtime.recover(outage)
        break
      } catch (error) {
        log.warn({ err: error, waitMs }, 'not every container could be looked after since the engine is back')
        await pause(clock, waitMs, signal)
      }
      if (signal.aborted) return
    }
  }
}

export interface RecoveryParts {
  readonly engine: EngineClient
  readonly owners: ContainerOwners
  readonly orphans: Pick<OrphanEnder, 'end'>
  readonly instanceId: string
  readonly log: Log
}

/**
 * Ends what the engine has forgotten, and starts what went down. One container that cannot be helped does not keep the others; the first
 * failure is thrown at the end.
 */
export async function recoverContainers(parts: RecoveryParts, outage: EngineOutage): Promise<void> {
  const { engine, owners, orphans, instanceId, log } = parts
  const containers = await engine.call(
    'list containers',
    async docker =>
      await docker.listContainers({ all: true, filters: { label: [`${instanceLabel}=${instanceId}`] } })
  )
  const failures: unknown[] = []
  const tryTo = async (work: () => Promise<unknown>): Promise<void> => {
    await work().catch((error: unknown) => failures.push(error))
  }
  const look = async (id: string): Promise<Docker.ContainerInspectInfo | undefined> => {
    const seen = await engine.call(
      'inspect a container',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    return seen !== undefined && owners.ofInspected(seen) !== undefined ? seen : undefined
  }
  const resting: string[] = []
  for (const { Id: id } of containers)
    await tryTo(async () => {
      if ((await look(id))?.State.Running === false) resting.push(id)
    })
  await tryTo(async () => await orphans.end(new Set(resting), outage.backAt))
  for (const id of resting)
    await tryTo(async () => {
      // As it is by now: it may have been stopped meanwhile, for work on its volume.
      const seen = await look(id)
      if (seen === undefined || !wentDownWithEngine(seen, outage)) return
      log.warn(
        { container: seen.Name.slice(1) },
        'a container that went down with the engine is started again'
      )
      await engine.call(
        `start the container ${id.slice(0, 12)}`,
        async docker => {
          await docker.getContainer(id).start()
        },
        { absent: [304, 404, 409], patient: true }
      )
    })
  if (failures.length > 0) throw failures[0]
}
