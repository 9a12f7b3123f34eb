import type Docker from 'dockerode'

type Image = Pick<Docker.ImageInfo, 'Id' | 'ParentId' | 'RepoTags' | 'Labels'>

/** Those that tests run by the names that everybody knows them by. */
const keptNames = new Set(['node:20', 'postgres:15', 'postgres:14', 'redis:7', 'mariadb:10.11'])

const isNamed = (name: string): boolean => name !== '<none>:<none>'

/**
 * Base images stay for the next run (`make-images.sh`, and the stage in which npm runs for the compose file). Those
 * without a name belong to the one that continues them, unless that is gone.
 */
export function withoutKept<T extends Image>(images: readonly T[]): T[] {
  const byId = new Map(images.map(image => [image.Id, image]))
  const namesOf = ({ RepoTags }: Image): string[] => (RepoTags ?? []).filter(isNamed)
  const continued = new Set<string>()
  for (const image of images.filter(one => namesOf(one).length > 0))
    for (let at = byId.get(image.ParentId); at !== undefined; at = byId.get(at.ParentId)) continued.add(at.Id)
  return images.filter(image => {
    const names = namesOf(image)
    return names.length === 0
      ? !continued.has(image.Id)
      : !names.every(name => name.endsWith(':lab') || keptNames.has(name))
  })
}
