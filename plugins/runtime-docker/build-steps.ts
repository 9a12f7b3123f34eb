import type { KeptSteps } from 'busbar/api/images'

/** An image as the engine lists it, with those that are steps of a build. */
export interface ListedImage {
  readonly id: string
  /** '' when it continues no other image of this engine. */
  readonly parentId: string
  /** With all that it continues. */
  readonly sizeBytes: number
  readonly createdAt: Date
  /** It has a name, or a container was made from it. */
  readonly isUsed: boolean
  /** Its labels say that it was built for the owner in question. */
  readonly isOwned: boolean
}

export interface BuildSteps {
  /** In the order in which they can be removed: what continues another one comes before it. */
  readonly ids: readonly string[]
  /** What removing them gives back. */
  readonly bytes: number
}

/**
 * What builds of the owner have left that nothing needs: steps without a name on which no image is built
 * that is kept. A step that a kept image continues is part of that image, and costs nothing beside it.
 */
export function unneededSteps(
  images: readonly ListedImage[],
  { newest, after, newestBytes = Infinity }: Omit<KeptSteps, 'ends'> = { newest: 0, after: new Date(0) }
): BuildSteps {
  const byId = new Map(images.map(image => [image.id, image]))
  const kept = new Set<string>()
  /** It and what it continues, the first one first, as far as none of it is kept. */
  const chainOf = (image: ListedImage): ListedImage[] => {
    const chain: ListedImage[] = []
    for (
      let at: ListedImage | undefined = image;
      at !== undefined && !kept.has(at.id);
      at = byId.get(at.parentId)
    )
      chain.push(at)
    return chain.reverse()
  }
  for (const image of images)
    if (!image.isOwned || image.isUsed) for (const { id } of chainOf(image)) kept.add(id)
  const continued = new Set(images.map(({ parentId }) => parentId))
  const fresh = images.filter(
    image => !kept.has(image.id) && !continued.has(image.id) && image.createdAt > after
  )
  let spareBytes = newestBytes
  for (const tip of fresh.sort((a, b) => Number(b.createdAt) - Number(a.createdAt)).slice(0, newest)) {
    for (const step of chainOf(tip)) {
      const bytes = ownBytes(step, byId.get(step.parentId))
      if (bytes > spareBytes) break
      spareBytes -= bytes
      kept.add(step.id)
    }
  }
  const depth = (image: ListedImage): number => {
    let steps = 0
    for (let at = byId.get(image.parentId); at !== undefined; at = byId.get(at.parentId)) steps++
    return steps
  }
  const unneeded = withUnlabelled(images, byId, new Set(images.filter(({ id }) => !kept.has(id))))
    .map(image => ({ image, depth: depth(image) }))
    .sort((a, b) => b.depth - a.depth)
  return {
    ids: unneeded.map(({ image }) => image.id),
    bytes: unneeded.reduce((sum, { image }) => sum + ownBytes(image, byId.get(image.parentId)), 0)
  }
}

/**
 * Adds what nothing but those steps continues, although it has no owner: what triggers of a base image make has no
 * labels yet. Nothing that has a name or was pulled is among it; the engine itself removes the same with an image.
 */
function withUnlabelled(
  images: readonly ListedImage[],
  byId: ReadonlyMap<string, ListedImage>,
  steps: ReadonlySet<ListedImage>
): readonly ListedImage[] {
  const all = new Set(steps)
  const left = new Map<string, number>()
  for (const { parentId } of images) left.set(parentId, (left.get(parentId) ?? 0) + 1)
  // A set goes on to what is added to it meanwhile.
  for (const { parentId } of all) {
    const others = (left.get(parentId) ?? 0) - 1
    left.set(parentId, others)
    const parent = byId.get(parentId)
    if (parent !== undefined && others === 0 && !parent.isOwned && !parent.isUsed && parent.parentId !== '')
      all.add(parent)
  }
  return [...all]
}

/** What it adds to the one it continues. Of one that is not listed the size is not known, so nothing is claimed. */
function ownBytes(image: ListedImage, parent: ListedImage | undefined): number {
  if (parent !== undefined) return Math.max(0, image.sizeBytes - parent.sizeBytes)
  return image.parentId === '' ? image.sizeBytes : 0
}
