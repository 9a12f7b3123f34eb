import type { KeptFetch } from 'busbar/api/builds'
import { type ImageUse, loadedPrefix } from 'busbar/api/images'

/** An image on the engine, and whose it is. */
export interface OwnedImage extends Pick<ImageUse, 'id' | 'containerIds' | 'parts'> {
  /** The owners whose applications have it. None: it is nobody's here, and what it is made of stays. */
  readonly ownerIds: ReadonlySet<string>
  /** What keeps it, each as `keepKey` writes it. */
  readonly keeps: ReadonlySet<string>
}

interface Owners {
  ofProject(projectId: string | undefined): string
  ofApplication(applicationId: string): string
  /** Undefined where it is not one of an application. */
  ofContainer(containerId: string): string | undefined
}

/** What was fetched is kept by each application, what was built by its own name. */
export const keepKey = (applicationId: string, reference: string): string =>
  reference.includes('@') ? `${applicationId} ${reference}` : reference

/**
 * What was fetched and is kept by no application is left out: it is a cache, or the base of what was built upon it, and goes after
 * that.
 */
export function ownedImages(
  images: readonly ImageUse[],
  fetched: readonly KeptFetch[],
  owners: Owners
): readonly OwnedImage[] {
  const keptAs = new Map<string, KeptFetch[]>()
  for (const one of fetched) keptAs.set(one.name, [...(keptAs.get(one.name) ?? []), one])
  return images.flatMap(({ id, names, owner, containerIds, parts }) => {
    const kept = names.flatMap(name => keptAs.get(name) ?? [])
    const own = names.filter(name => !name.startsWith(loadedPrefix))
    const isLoaded = names.length > 0 && own.length === 0
    const ownerIds = new Set([
      ...(owner === undefined ? [] : [owners.ofProject(owner.projectId)]),
      ...kept.map(({ applicationId }) => owners.ofApplication(applicationId)),
      ...(isLoaded ? containerIds.flatMap(container => owners.ofContainer(container) ?? []) : [])
    ])
    if (isLoaded && ownerIds.size === 0 && containerIds.length === 0) return []
    const keeps = [...own, ...kept.map(({ applicationId, reference }) => keepKey(applicationId, reference))]
    return [{ id, containerIds, parts, ownerIds, keeps: new Set(keeps) }]
  })
}

interface ImageHoldings {
  /** By owner, what its images take; of what others have too, its part. What is also of an image that is nobody's counts for none. */
  readonly ofOwner: ReadonlyMap<string, number>
  /** By container, what its image alone takes, which no other one was made from. */
  readonly ofContainer: ReadonlyMap<string, number>
}

export function imageHoldings(images: readonly OwnedImage[]): ImageHoldings {
  const ofOwner = new Map<string, number>()
  const ofContainer = new Map<string, number>()
  for (const { bytes, users } of usersOfParts(images).values()) {
    const ownerIds = new Set([...users].flatMap(({ ownerIds: ids }) => (ids.size === 0 ? [''] : [...ids])))
    if (ownerIds.has('')) continue
    for (const ownerId of ownerIds) ofOwner.set(ownerId, (ofOwner.get(ownerId) ?? 0) + bytes / ownerIds.size)
    if (ownerIds.size > 1) continue
    const [image] = users
    const [container] = image?.containerIds ?? []
    if (users.size === 1 && container !== undefined && image?.containerIds.length === 1)
      ofContainer.set(container, (ofContainer.get(container) ?? 0) + bytes)
  }
  return { ofOwner, ofContainer }
}

/** What the record says of an image of an application: of the deployment that made it, or uses it again. */
export interface ImageRecord {
  readonly applicationId: string
  readonly deploymentId: string
  readonly reference: string
  /** The deployment is under way. */
  readonly isActive: boolean
  /** Its container is the one that serves, or did last. */
  readonly isServing: boolean
}

/** An image that nothing runs from. */
export interface SpareImage {
  readonly applicationId: string
  readonly reference: string
  /** Those that could be gone back to with it. */
  readonly deploymentIds: readonly string[]
  /** What comes back with it, once those before it have gone. */
  readonly bytes: number
}

/**
 * Which images of an owner go: of each application those first that are furthest back, that before the one that runs last, and
 * after all of these that of an application without a container. None that a container was made from, or that is of a
 * deployment under way. No more than give back what is `missing`, and none once the owner holds less than the `next` one.
 */
export function spareImages(
  images: readonly OwnedImage[],
  records: readonly ImageRecord[],
  {
    ownerId,
    deployedIds,
    missing,
    held,
    next
  }: {
    readonly ownerId: string
    /** The deployments of which there are containers. */
    readonly deployedIds: ReadonlySet<string>
    readonly missing: number
    readonly held: number
    readonly next: number
  }
): readonly SpareImage[] {
  const imageOf = new Map(images.flatMap(image => [...image.keeps].map(keep => [keep, image] as const)))
  const order = removable(records, deployedIds)
  const keeps = new Set(order.map(({ keep }) => keep))
  const goes = (image: OwnedImage): boolean =>
    image.containerIds.length === 0 &&
    image.ownerIds.size === 1 &&
    image.ownerIds.has(ownerId) &&
    [...image.keeps].every(keep => keeps.has(keep))
  const parts = usersOfParts(images)
  const comesBack = (part: { readonly id: string; readonly bytes: number }): boolean =>
    part.bytes > 0 && [...(parts.get(part.id)?.users ?? [])].every(goes)
  const left = new Map(images.map(image => [image, new Set(image.keeps)]))
  const spare: SpareImage[] = []
  let freed = 0
  for (const { keep, ...image } of order) {
    const stored = imageOf.get(keep)
    if (stored === undefined || !goes(stored) || !stored.parts.some(comesBack)) continue
    if (freed > 0 && (freed >= missing || held - freed <= next)) break
    left.get(stored)?.delete(keep)
    let bytes = 0
    if (left.get(stored)?.size === 0)
      for (const { id } of stored.parts) {
        const part = parts.get(id)
        part?.users.delete(stored)
        if (part?.users.size === 0) bytes += part.bytes
      }
    freed += bytes
    spare.push({ ...image, bytes })
  }
  return spare.slice(0, spare.findLastIndex(({ bytes }) => bytes > 0) + 1)
}

interface Removable extends Omit<SpareImage, 'bytes'> {
  readonly keep: string
}

/** `records`: the newest first. */
function removable(records: readonly ImageRecord[], deployedIds: ReadonlySet<string>): readonly Removable[] {
  const byApplication = new Map<string, ImageRecord[]>()
  for (const record of records)
    byApplication.set(record.applicationId, [...(byApplication.get(record.applicationId) ?? []), record])
  return [...byApplication.values()]
    .flatMap(all => {
      const isThere = all.some(({ deploymentId, isActive }) => isActive || deployedIds.has(deploymentId))
      const isUsed = ({ deploymentId, isActive, isServing }: ImageRecord): boolean =>
        isActive || deployedIds.has(deploymentId) || (isServing && isThere)
      const byReference = new Map<string, ImageRecord[]>()
      for (const record of all)
        byReference.set(record.reference, [...(byReference.get(record.reference) ?? []), record])
      // One that is being built has none yet.
      byReference.delete('')
      return [...byReference]
        .filter(([, of]) => !of.some(isUsed))
        .map(([reference, of], place) => ({
          applicationId: of[0]?.applicationId ?? '',
          reference,
          keep: keepKey(of[0]?.applicationId ?? '', reference),
          deploymentIds: of.map(({ deploymentId }) => deploymentId),
          place: of.some(({ isServing }) => isServing) ? -1 : place
        }))
    })
    .sort((a, b) => b.place - a.place)
    .map(({ place: _, ...image }) => image)
}

interface Part {
  readonly bytes: number
  readonly users: Set<OwnedImage>
}

function usersOfParts(images: readonly OwnedImage[]): ReadonlyMap<string, Part> {
  const parts = new Map<string, Part>()
  for (const image of images)
    for (const { id, bytes } of image.parts) {
      const known = parts.get(id)
      if (known === undefined) parts.set(id, { bytes, users: new Set([image]) })
      else known.users.add(image)
    }
  return parts
}
