import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import type { Labels } from './labels.js'
import { untilEngineRemoves } from './step-end.js'
import { removeStep } from './step-removal.js'

/** A step of a build that had labels of another owner. */
export interface MislabelledStep {
  readonly label: string
  readonly containerId: string
  readonly parentId: string
  readonly createdAt: Date
  readonly labels: Labels
}

export const mislabelledStep = (label: string, seen: Docker.ContainerInspectInfo): MislabelledStep => ({
  label,
  containerId: seen.Id,
  parentId: seen.Config.Image,
  createdAt: new Date(seen.Created),
  labels: seen.Config.Labels
})

const removalMs = 10_000

/** Removes the images that a build has made of such steps, so that they are neither counted nor kept as those of whom they name. */
export async function removeMislabelledSteps(
  engine: EngineClient,
  steps: readonly MislabelledStep[],
  allImages: () => Promise<readonly Docker.ImageInfo[]>
): Promise<void> {
  for (const { containerId } of steps) await untilEngineRemoves(engine, containerId, removalMs)
  // All that the build has made is there now.
  const images = await allImages()
  // What continues another one goes first; each takes along the steps that only it continued.
  for (const step of [...steps].reverse())
    for (const { Id: id } of images.filter(image => isFrom(step, image))) await removeStep(engine, id)
}

/** Never one that was there before: an image says in whole seconds when it was made. */
function isFrom({ parentId, createdAt, labels }: MislabelledStep, image: Docker.ImageInfo): boolean {
  const found = (image.Labels as Labels | null) ?? {}
  return (
    image.ParentId === parentId &&
    image.Created >= Math.floor(createdAt.getTime() / 1000) &&
    Object.keys(found).length === Object.keys(labels).length &&
    Object.entries(labels).every(([key, value]) => found[key] === value)
  )
}
