import type { Target } from 'busbar/api/direct'
import { isProblem } from 'busbar/sdk'
import { candidateName } from './container-name.js'
import { from, type Rollout, type RolloutTools } from './rollout.js'
import { targetOf } from './settling.js'

/**
 * Makes the new container the one that serves. Names first, the direct address last: until that moment
 * no request of it has gone anywhere else.
 */
export async function switchTraffic(rollout: Rollout, tools: RolloutTools): Promise<void> {
  const { runtime, tidying } = tools
  const { id: applicationId, slug } = from(rollout, 'application')
  const containerId = from(rollout, 'containerId')
  const [survey, target] = await Promise.all([
    tidying.survey(applicationId),
    openDirectAddress(rollout, tools)
  ])
  rollout.old = survey.find(({ fate }) => fate === 'serves')?.container

  // Whoever bears the name, by whatever history, gives it up.
  const bearer = survey.find(
    ({ container }) => container.name === slug && container.id !== containerId
  )?.container
  if (bearer !== undefined)
    await runtime.rename(bearer.id, candidateName(slug, bearer.owner.deploymentId ?? bearer.id))
  await runtime.rename(containerId, slug)
  if (target !== undefined) await switchDirectAddress(rollout, target, tools)
}

/** The new target; undefined where there is no direct address. Nothing goes there yet. */
async function openDirectAddress(
  rollout: Rollout,
  { direct, runtime }: RolloutTools
): Promise<Target | undefined> {
  const addresses = direct.get()
  if (addresses === undefined) return undefined
  const containerId = from(rollout, 'containerId')
  const [at] = await Promise.all([
    runtime.dial(containerId, from(rollout, 'port')),
    addresses.open(from(rollout, 'application').id).catch((error: unknown) => noteMissing(rollout, error))
  ])
  return { deploymentId: rollout.deployment.id, containerId, ...at }
}

async function switchDirectAddress(
  rollout: Rollout,
  target: Target,
  { direct }: RolloutTools
): Promise<void> {
  try {
    rollout.isDirectTouched = true
    rollout.drain = (await direct.get()?.switchTo(from(rollout, 'application').id, target))?.drain
  } catch (error) {
    // Without a direct address the switch is the renaming, which domains follow.
    noteMissing(rollout, error)
  }
}

function noteMissing(rollout: Rollout, error: unknown): void {
  if (!isProblem(error)) throw error
  rollout.buildLog.line({ level: 'warning', msg: `No direct address: ${error.message}.` })
}

/** The old container gets its requests and its name back. */
export async function switchTrafficBack(
  rollout: Rollout,
  { direct, runtime, store }: RolloutTools
): Promise<void> {
  const { id: applicationId, slug } = from(rollout, 'application')
  const { old, containerId, deployment, isDirectTouched } = rollout
  if (isDirectTouched === true)
    await direct.get()?.retarget(applicationId, await targetOf(old, { runtime, store }))
  if (containerId !== undefined && (await runtime.inspect(containerId)) !== undefined)
    await runtime.rename(containerId, candidateName(slug, deployment.id))
  if (old !== undefined && (await runtime.inspect(old.id)) !== undefined) await runtime.rename(old.id, slug)
}
