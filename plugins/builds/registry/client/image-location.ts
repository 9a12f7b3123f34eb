import { imageReferenceShape, registryOf } from 'busbar/api/images'
import { problems } from '../../problems.js'
import { longestReference } from '../local-image.js'

/** Where an image is, as the engine reads its name: `node` is `latest` of library/node at Docker Hub. */
export interface ImageLocation {
  /** As credentials and words name it: `docker.io`, `127.0.0.1:5000`. */
  readonly registry: string
  /** Whom to ask. */
  readonly host: string
  /** Of the repository, as the registry knows it. */
  readonly path: string
  /** The name as it was written, without tag and digest. */
  readonly name: string
  /** A tag, or `sha256:…`, which wins over a tag. */
  readonly version: string
}

export function locateImage(reference: string): ImageLocation {
  const { name, tag, digest } =
    (reference.length <= longestReference ? imageReferenceShape.exec(reference)?.groups : undefined) ?? {}
  if (name === undefined) throw problems.badImageName({ image: reference.slice(0, 200) })
  const registry = registryOf(name)
  const first = name.split('/', 1)[0] ?? ''
  const hasHost = registry !== 'docker.io' || /^(index\.)?docker\.io$/i.test(first)
  const rest = hasHost ? name.slice(first.length + 1) : name
  const isHub = registry === 'docker.io'
  const host = isHub ? 'registry-1.docker.io' : registry
  // A port may be none, and so may what looks like an address.
  if (!URL.canParse(`https://${host}/`)) throw problems.badImageName({ image: reference.slice(0, 200) })
  return {
    registry,
    host,
    path: isHub && !rest.includes('/') ? `library/${rest}` : rest,
    name,
    version: digest ?? tag ?? 'latest'
  }
}
