import type { ImageInfo, ImageService } from 'busbar/api/images'

export const longestReference = 512

/**
 * What the engine holds under a name with a tag or a digest. It would take a name for the beginning of an id too, so
 * what it answers must carry the name.
 */
export async function findByName(
  imageService: Pick<ImageService, 'image'>,
  name: string
): Promise<ImageInfo | undefined> {
  if (name.startsWith('sha256:') || name.length > longestReference) return undefined
  const written = /[:@]/.test(name.slice(name.lastIndexOf('/') + 1)) ? name : `${name}:latest`
  const image = await imageService.image(written)
  return image !== undefined && carries(image, written) ? image : undefined
}

function carries({ repoTags = [], repoDigests }: ImageInfo, name: string): boolean {
  const [beforeDigest = '', digest] = name.split('@', 2)
  const repository = fullRepository(name)
  if (digest !== undefined)
    return repoDigests.some(known => fullRepository(known) === repository && known.endsWith(`@${digest}`))
  const tag = beforeDigest.slice(beforeDigest.lastIndexOf(':'))
  return repoTags.some(known => fullRepository(known) === repository && known.endsWith(tag))
}

/** The digest of a name, else its tag. */
export const versionOf = (name: string): string =>
  name.includes('@') ? name.slice(name.indexOf('@') + 1) : (/:([^:/]+)$/.exec(name)?.[1] ?? 'latest')

/** A full repository as people write it: `node` for `docker.io/library/node`. */
export const familiarName = (repository: string): string =>
  repository.replace(/^docker\.io\/(?:library\/)?/, '')

/** `node`, `docker.io/node` and `library/node:20` are all `docker.io/library/node`. */
export function fullRepository(name: string): string {
  const bare = (name.split('@', 1)[0] ?? '').replace(/:[^/:]*$/, '')
  const first = bare.split('/', 1)[0] ?? ''
  const hasHost = bare.includes('/') && (/[.:]/.test(first) || first === 'localhost')
  const path = hasHost ? bare : `docker.io/${bare}`
  return path
    .replace(/^(index\.)?docker\.io\/(?=[^/]+$)/, 'docker.io/library/')
    .replace(/^index\.docker\.io\//, 'docker.io/')
}
