import type Docker from 'dockerode'
import type { Owner } from './api.js'
import type { EngineClient } from './engine-client.js'
import { imageInstanceLabel, instanceLabel, ownerFilter, ownerOf } from './labels.js'

/** See `ContainerRuntime.buildSteps`. */
export async function stepContainers (engine: EngineClient, instanceId: string, owner: Owner): Promise<Array<{ readonly id: string, readonly owner: Owner }>> {
  const label = [`${imageInstanceLabel}=${instanceId}`, ...ownerFilter(owner)]
  const found = await engine.call('list containers', async docker => await docker.listContainers({ all: true, filters: { label } }))
  const steps: Array<{ readonly id: string, readonly owner: Owner }> = []
  for (const { Id: id } of found.filter(({ Labels: labels }) => labels[instanceLabel] === undefined)) {
    const seen = await engine.call('inspect a container', async docker => await docker.getContainer(id).inspect(), { absent: [404] })
    if (seen !== undefined && isStepContainer(seen, instanceId)) steps.push({ id, owner: ownerOf(seen.Config.Labels) })
  }
  return steps
}

/** Made from the id of an image of ours. Who runs one by hand names it. */
export const isStepContainer = ({ Config: { Image: image, Labels: labels } }: Pick<Docker.ContainerInspectInfo, 'Config'>, instanceId: string): boolean =>
  labels[instanceLabel] === undefined && labels[imageInstanceLabel] === instanceId && /^sha256:[0-9a-f]{64}$/.test(image)
