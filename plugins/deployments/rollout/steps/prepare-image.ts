import type { PreparedImage } from 'busbar/api/builds'
import type { DeploymentChanges } from '../../records/deployment-store.js'
import { ConcurrentWrites } from '../concurrent-writes.js'
import { DeployFailure } from '../deploy-failure.js'
import type { Loaded, RolloutTools, WithImage } from '../rollout.js'
import type { RolloutStep } from '../step-sequence.js'

type ImageTools = Pick<RolloutTools, 'images' | 'prepared' | 'records' | 'store' | 'clock' | 'buildQueue'>

/**
 * Gets the image: built or pulled, or that of an earlier deployment. Every deployment passes through
 * `building`; where there is nothing to build it is left at once.
 */
export const prepareImage = (tools: ImageTools): RolloutStep<Loaded, Pick<WithImage, 'image'>> => ({
  name: 'prepare-image',
  isEarly: true,
  async run(rollout) {
    const { kind } = rollout.deployment
    return {
      image:
        kind === 'reload' || kind === 'rollback'
          ? await storedImage(rollout, tools)
          : await buildImage(rollout, tools)
    }
  }
})

async function buildImage(
  { deployment, buildLog, buildSteps, secrets, signal, application, variables }: Loaded,
  { images, records, store, clock, buildQueue }: ImageTools
): Promise<PreparedImage> {
  const limits = application.source.type === 'git' ? await buildQueue.enter(deployment, buildLog) : undefined
  const writes = new ConcurrentWrites()
  const note = (changes: DeploymentChanges): void =>
    writes.add(async () => await store.change(deployment.id, changes))
  writes.add(async () => await records.beginBuild(deployment.id, { build_started_at: clock.now() }))
  const preparing = images.prepare(
    {
      applicationId: application.id,
      deploymentId: deployment.id,
      projectId: application.projectId,
      slug: application.slug,
      source: application.source,
      buildType: application.buildType,
      builderImage: application.builderImage,
      customBuildpacks: application.customBuildpacks,
      variables,
      commit: deployment.kind === 'rebuild' ? (deployment.commit_sha ?? undefined) : undefined,
      limits
    },
    {
      signal: AbortSignal.any([signal, writes.failed]),
      secrets,
      log: line => buildLog.line(line),
      onStep: step => buildSteps.step(step),
      onEngine: engine => note({ build_engine: engine }),
      onCommit: ({ sha, message, author }) =>
        note({ commit_sha: sha, commit_message: message, commit_author: author })
    }
  )
  // Whatever the image came to: that the record could not be written counts, and nothing is written later.
  const image = await preparing.finally(async () => await writes.done())
  signal.throwIfAborted()
  // The record holds the last line before the channel says that there are no more.
  await Promise.all([buildLog.flush(), buildSteps.flush()])
  const endedAt = clock.now()
  await records.beginRollout(deployment.id, {
    image_tag: image.reference,
    build_ended_at: endedAt,
    deploy_started_at: deployment.kind === 'build' ? null : endedAt
  })
  buildLog.endChannel()
  return image
}

async function storedImage(
  { deployment, buildLog }: Loaded,
  { prepared, records, clock }: ImageTools
): Promise<PreparedImage> {
  const reference = deployment.image_tag ?? ''
  await records.beginBuild(deployment.id, {})
  const image = await prepared.find(deployment.application_id, reference)
  if (image === undefined)
    throw new DeployFailure(`the image ${reference} is no longer on this machine`, 'deploy again instead')
  buildLog.line({ level: 'info', msg: `Using the image ${reference} again; nothing is built.` })
  await buildLog.flush()
  await records.beginRollout(deployment.id, { deploy_started_at: clock.now() })
  buildLog.endChannel()
  return image
}
