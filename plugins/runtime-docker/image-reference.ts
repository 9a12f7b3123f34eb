import { imageReferenceShape, registryOf } from 'busbar/api/images'
import { problems } from './problems.js'

/** An image's name as the engine reads it: `node` is `node:latest` of docker.io. */
export interface ImageReference {
  readonly registry: string
  /** The name as it was written, without tag and digest. */
  readonly name: string
  /** A tag, or `sha256:…`. */
  readonly version: string
}

/** An image's own id, whole or as short as docker shows it. */
const idShape = /^(?:sha256:)?[0-9a-f]{12,64}$/

/** Refuses what is neither the name nor the id of an image: it is going to be part of a URL. */
export function checkImage(text: string): void {
  if (!idShape.test(text)) parseImageReference(text)
}

/** Reads `[registry/]name[:tag][@digest]`; the digest wins over the tag, which defaults to `latest`. */
export function parseImageReference(text: string): ImageReference {
  const { name, tag, digest } = imageReferenceShape.exec(text)?.groups ?? {}
  if (name === undefined || text.length > 512) throw problems.badReference({ image: text.slice(0, 200) })
  return { registry: registryOf(name), name, version: digest ?? tag ?? 'latest' }
}
