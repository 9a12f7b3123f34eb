import { setTimeout as sleep } from 'node:timers/promises'
import Docker from 'dockerode'

/** A cancelled build holds its last step, its image and its network for a moment. */
const limitMs = 10_000
const pauseMs = 100

/**
 * Takes away what the installation has on the engine: containers, images with the steps that they were made of,
 * volumes and networks. What others hold is tried again for ten seconds and then left; it shows in `leftovers.ts`.
 */
export async function removeFromEngine(instanceId: string, docker = new Docker()): Promise<void> {
  const end = performance.now() + limitMs
  while ((await removeOnce(instanceId, docker)) > 0 && performance.now() < end) await sleep(pauseMs)
}

/** How many things are still there. */
async function removeOnce(instanceId: string, docker: Docker): Promise<number> {
  const owned = { label: [`busbar-instance=${instanceId}`] }
  const built = { label: [`busbar-image-instance=${instanceId}`] }
  let left = 0
  const removing = async (remove: () => Promise<unknown>): Promise<void> => {
    await remove().catch((error: unknown) => {
      if ((error as { statusCode?: number }).statusCode !== 404) left++
    })
  }
  const containers = await Promise.all(
    // A container that runs an image has the labels of it.
    [owned, built].map(async filters => await docker.listContainers({ all: true, filters }))
  )
  for (const id of new Set(containers.flat().map(({ Id }) => Id)))
    await removing(async () => await docker.getContainer(id).remove({ force: true, v: true }))
  const images = await docker.listImages({ all: true, filters: built })
  for (const id of lastFirst(images))
    await removing(async () => await docker.getImage(id).remove({ force: true }))
  const { Volumes: volumes } = await docker.listVolumes({ filters: owned })
  for (const { Name } of volumes ?? []) await removing(async () => await docker.getVolume(Name).remove())
  for (const { Id } of await docker.listNetworks({ filters: owned }))
    await removing(async () => await docker.getNetwork(Id).remove())
  return left
}

/** An image that another one continues cannot be removed before that one. */
export function lastFirst(images: ReadonlyArray<Pick<Docker.ImageInfo, 'Id' | 'ParentId'>>): string[] {
  const parents = new Map(images.map(({ Id, ParentId }) => [Id, ParentId]))
  const depth = (id: string): number => {
    const parent = parents.get(id)
    return parent === undefined ? 0 : 1 + depth(parent)
  }
  return [...parents.keys()].sort((a, b) => depth(b) - depth(a))
}
