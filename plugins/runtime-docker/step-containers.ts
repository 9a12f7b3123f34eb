import type { Owner } from 'busbar/api/containers'
import type { BuildStep } from 'busbar/api/images'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { type Identity, isMadeByPlatform } from './identity.js'
import { imageInstanceLabel, isAmong, ownerFilter } from './labels.js'

type Seen = Pick<Docker.ContainerInspectInfo, 'Config' | 'HostConfig'>

/** See `ImageService.buildSteps`. */
export async function stepContainers(
  engine: EngineClient,
  { instanceId, identity }: { readonly instanceId: string; readonly identity: Identity },
  owner: Owner
): Promise<readonly BuildStep[]> {
  const label = [`${imageInstanceLabel}=${instanceId}`, ...ownerFilter(owner)]
  const found = await engine.call(
    'list containers',
    async docker => await docker.listContainers({ all: true, filters: { label } })
  )
  const steps: BuildStep[] = []
  for (const { Id: id } of found) {
    const seen = await engine.call(
      'inspect a container',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    const stepOwner = seen === undefined ? undefined : stepOwnerOf(seen, identity)
    if (stepOwner !== undefined && isAmong(owner, stepOwner)) steps.push({ id, owner: stepOwner })
  }
  return steps
}

/** Of a container that was made from the id of an image of ours, and not by a platform. Who runs one by hand names it. */
export const stepOwnerOf = (
  { Config: { Image: image, Labels: labels }, HostConfig }: Seen,
  identity: Identity
): Owner | undefined =>
  /^sha256:[0-9a-f]{64}$/.test(image) && !isMadeByPlatform(HostConfig)
    ? identity.image(labels, false)
    : undefined
