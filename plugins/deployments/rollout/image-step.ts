import { DeployFailure } from './deploy-failure.js'
import { from, type Rollout, type RolloutTools } from './rollout.js'

/**
 * Gets the image: built or pulled, or that of an earlier deployment. Every deployment passes through
 * `building`; where there is nothing to build it is left at once.
 */
export async function prepareImage(rollout: Rollout, tools: RolloutTools): Promise<void> {
  const { kind } = rollout.deployment
  if (kind === 'reload' || kind === 'rollback') await useStoredImage(rollout, tools)
  else await buildImage(rollout, tools)
}

async function buildImage(
  rollout: Rollout,
  { images, records, store, clock, buildQueue }: RolloutTools
): Promise<void> {
  const { deployment, buildLog, signal } = rollout
  const application = from(rollout, 'application')
  const limits = application.source.type === 'git' ? await buildQueue.enter(deployment, buildLog) : undefined
  await records.beginBuild(deployment.id, { build_started_at: clock.now() })
  rollout.image = await images.prepare(
    {
      applicationId: application.id,
      deploymentId: deployment.id,
      projectId: application.projectId,
      slug: application.slug,
      source: application.source,
      buildType: application.buildType,
      builderImage: application.builderImage,
      customBuildpacks: application.customBuildpacks,
      variables: from(rollout, 'variables'),
      commit: deployment.kind === 'rebuild' ? (deployment.commit_sha ?? undefined) : undefined,
      limits
    },
    {
      signal,
      log: line => buildLog.line(line),
      onCommit: async ({ sha, message, author }) =>
        await store.change(deployment.id, { commit_sha: sha, commit_message: message, commit_author: author })
    }
  )
  signal.throwIfAborted()
  // The record holds the last line before the channel says that there are no more.
  await buildLog.flush()
  const endedAt = clock.now()
  await records.beginRollout(deployment.id, {
    image_tag: rollout.image.reference,
    build_ended_at: endedAt,
    deploy_started_at: deployment.kind === 'build' ? null : endedAt
  })
  buildLog.endChannel()
}

async function useStoredImage(rollout: Rollout, { runtime, records, clock }: RolloutTools): Promise<void> {
  const { deployment, buildLog } = rollout
  const reference = deployment.image_tag ?? ''
  await records.beginBuild(deployment.id, {})
  const image = await runtime.image(reference)
  if (image === undefined)
    throw new DeployFailure(`the image ${reference} is no longer on this machine`, 'deploy again instead')
  buildLog.line({ level: 'info', msg: `Using the image ${reference} again; nothing is built.` })
  await buildLog.flush()
  await records.beginRollout(deployment.id, { deploy_started_at: clock.now() })
  buildLog.endChannel()
  rollout.image = { reference, image }
}
