import type { ContainerState } from 'busbar/api/containers'
import { settleAll } from 'busbar/sdk'
import type { TrafficTarget } from '../../api.js'
import { type Drain, type FoundRouter, together } from '../../traffic/traffic.js'
import { candidateName } from '../container-name.js'
import { drainMs, orStopped } from '../drain-limit.js'
import type { Proven, RolloutTools, Switched } from '../rollout.js'
import { targetOf } from '../serving-reconciler.js'
import type { RolloutStep } from '../step-sequence.js'

type SwitchTools = Pick<RolloutTools, 'runtime' | 'cleanup' | 'traffic' | 'store'>

/**
 * Makes the new container the one that serves: by its name, for what is in the network of the project, and by the traffic
 * routers, for everybody else, both at once.
 */
export function switchTraffic(
  tools: SwitchTools
): RolloutStep<Proven, Pick<Switched, 'old' | 'routers' | 'drain'>> {
  const { runtime, cleanup, traffic } = tools
  return {
    name: 'switch',
    isEarly: true,
    async run(rollout, noted) {
      const { deployment, containerId, buildLog, undos } = rollout
      const { id: applicationId, slug } = rollout.application
      const begun: FoundRouter[] = []
      undos.push({
        step: 'switch',
        run: async signal =>
          await switchTrafficBack(
            { applicationId, slug, deploymentId: deployment.id, containerId, routers: begun },
            tools,
            signal
          )
      })
      const routers = traffic.routers()
      // From then on, a process that takes this up has to know that the switch has begun.
      const ready = settleAll([
        noted,
        // Without routers the switch is the renaming, and the address is not needed.
        routers.length === 0 ? undefined : newTarget(rollout, tools),
        traffic.prepare(routers, applicationId)
      ])
      // Requests go to the new version as soon as its address is known: who has the name, they need not wait for.
      const rename = async (): Promise<ContainerState | undefined> => {
        const [containers] = await settleAll([cleanup.containersByRole(applicationId), ready])
        // Whichever container has the name gets its candidate name.
        const holder = containers.find(
          ({ container }) => container.name === slug && container.id !== containerId
        )?.container
        if (holder !== undefined)
          await runtime.rename(holder.id, candidateName(slug, holder.owner.deploymentId ?? holder.id))
        await runtime.rename(containerId, slug)
        return containers.find(({ role }) => role === 'serving')?.container
      }
      const lead = async (): Promise<Drain[]> => {
        const [, target, warnings] = await ready
        for (const warning of warnings) buildLog.line({ level: 'warning', msg: `${warning}.` })
        const drains: Drain[] = []
        for (const router of routers) {
          if (target === undefined) break
          begun.push(router)
          const drain = await traffic.switchTo(router, applicationId, target)
          if (drain !== undefined) drains.push(drain)
          else
            buildLog.line({
              level: 'warning',
              msg: `The plugin "${router.plugin}" was turned off meanwhile: it does not lead requests to the new version.`
            })
        }
        return drains
      }
      const [drains, old] = await settleAll([lead(), rename()])
      return { old, routers, drain: together(drains) }
    }
  }
}

/** Nothing goes there yet. */
async function newTarget(
  { deployment, containerId, port }: Proven,
  { runtime }: SwitchTools
): Promise<TrafficTarget> {
  return { deploymentId: deployment.id, containerId, ...(await runtime.dial(containerId, port)) }
}

interface SwitchBack {
  readonly applicationId: string
  readonly slug: string
  readonly deploymentId: string
  /** Undefined when it is gone already. */
  readonly containerId: string | undefined
  /** Those by which requests may go to the new container. */
  readonly routers: readonly FoundRouter[]
}

/** The old container gets its requests and its name back; requests under way finish on the new one. */
export async function switchTrafficBack(
  { applicationId, slug, deploymentId, containerId, routers }: SwitchBack,
  tools: SwitchTools,
  signal: AbortSignal
): Promise<void> {
  const { traffic, runtime, cleanup } = tools
  // As the record has it, which is written after the switch.
  const old = (await cleanup.containersByRole(applicationId)).find(
    ({ role }) => role === 'serving'
  )?.container
  const target = routers.length === 0 ? null : await targetOf(old, tools)
  const { drain, fault } = await traffic.revert(routers, applicationId, target)
  const drained = drain(drainMs)
  if (containerId !== undefined && (await runtime.inspect(containerId)) !== undefined)
    await runtime.rename(containerId, candidateName(slug, deploymentId))
  if (old !== undefined && (await runtime.inspect(old.id)) !== undefined) await runtime.rename(old.id, slug)
  await orStopped(drained, signal).catch(() => {})
  if (fault !== undefined) throw fault
}
