import type { DirectAddresses, Target } from 'busbar/api/direct'
import type { ContainerState } from 'busbar/api/runtime-docker'
import { isProblem, settleAll } from 'busbar/sdk'
import { candidateName } from '../container-name.js'
import { drainMs, orStopped } from '../drain-limit.js'
import type { Proven, RolloutTools, Switched } from '../rollout.js'
import { targetOf } from '../settling.js'
import type { RolloutStep } from '../step-sequence.js'

type SwitchTools = Pick<RolloutTools, 'runtime' | 'tidying' | 'direct' | 'store'>

/**
 * Makes the new container the one that serves. Names first, the direct address last: until that moment
 * no request of it has gone anywhere else.
 */
export function switchTraffic(tools: SwitchTools): RolloutStep<Proven, Pick<Switched, 'old' | 'drain'>> {
  const { runtime, tidying, direct } = tools
  return {
    name: 'switch',
    isEarly: true,
    async run(rollout, noted) {
      const { deployment, containerId, undos } = rollout
      const { id: applicationId, slug } = rollout.application
      let old: ContainerState | undefined
      let isDirectTouched = false
      undos.push({
        step: 'switch',
        run: async signal =>
          await switchTrafficBack(
            { applicationId, slug, deploymentId: deployment.id, containerId, old, isDirectTouched },
            tools,
            signal
          )
      })
      // From the first renaming on, a process that takes this up has to know that the switch has begun.
      const [, survey, target] = await settleAll([
        noted,
        tidying.survey(applicationId),
        openDirectAddress(rollout, tools)
      ])
      old = survey.find(({ fate }) => fate === 'serves')?.container

      // Whoever bears the name, by whatever history, gives it up.
      const bearer = survey.find(
        ({ container }) => container.name === slug && container.id !== containerId
      )?.container
      if (bearer !== undefined)
        await runtime.rename(bearer.id, candidateName(slug, bearer.owner.deploymentId ?? bearer.id))
      await runtime.rename(containerId, slug)
      if (target === undefined) return { old, drain: undefined }
      isDirectTouched = true
      const switched = await orNoted(rollout, direct.get()?.switchTo(applicationId, target))
      return { old, drain: switched?.drain }
    }
  }
}

/** The new target; undefined where there is no direct address. Nothing goes there yet. */
async function openDirectAddress(
  rollout: Proven,
  { direct, runtime }: SwitchTools
): Promise<Target | undefined> {
  const addresses = direct.get()
  if (addresses === undefined) return undefined
  const { containerId, port, application } = rollout
  const [at] = await Promise.all([
    runtime.dial(containerId, port),
    orNoted(rollout, addresses.open(application.id))
  ])
  return { deploymentId: rollout.deployment.id, containerId, ...at }
}

/** Without a direct address the switch is the renaming, which domains follow. */
async function orNoted<T>({ buildLog }: Proven, work: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (!isProblem(error)) throw error
    buildLog.line({ level: 'warning', msg: `No direct address: ${error.message}.` })
    return undefined
  }
}

interface SwitchBack {
  readonly applicationId: string
  readonly slug: string
  readonly deploymentId: string
  /** Undefined when it is gone already. */
  readonly containerId: string | undefined
  readonly old: ContainerState | undefined
  /** The direct address may go to the new container. */
  readonly isDirectTouched: boolean
}

/** The old container gets its requests and its name back; what the new one has begun to answer ends there. */
export async function switchTrafficBack(
  { applicationId, slug, deploymentId, containerId, old, isDirectTouched }: SwitchBack,
  tools: Pick<SwitchTools, 'direct' | 'runtime' | 'store'>,
  signal: AbortSignal
): Promise<void> {
  const { direct, runtime } = tools
  const back = isDirectTouched
    ? await redirect(applicationId, await targetOf(old, tools), direct.get())
    : undefined
  const drained = back?.drain(drainMs)
  if (containerId !== undefined && (await runtime.inspect(containerId)) !== undefined)
    await runtime.rename(containerId, candidateName(slug, deploymentId))
  if (old !== undefined && (await runtime.inspect(old.id)) !== undefined) await runtime.rename(old.id, slug)
  await orStopped(drained, signal).catch(() => {})
}

/** Undefined where there is nothing to go back to. */
async function redirect(
  applicationId: string,
  target: Target | null,
  addresses: DirectAddresses | undefined
): Promise<Awaited<ReturnType<DirectAddresses['switchTo']>> | undefined> {
  if (target !== null) return await addresses?.switchTo(applicationId, target)
  await addresses?.retarget(applicationId, null)
  return undefined
}
