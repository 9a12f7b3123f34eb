import type { Owner } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import type { Identity } from './identity.js'
import type { Images } from './images.js'
import { unexpectedLabel } from './labels.js'
import { problems } from './problems.js'

export interface HandoverParts {
  readonly images: Images
  readonly identity: Identity
}

/** Of an archive that names none, as the engine says it when it has it. */
export function unnamedImageIn({ stream }: Readonly<Record<string, unknown>>): string | undefined {
  return typeof stream === 'string'
    ? /^Loaded image ID: (sha256:[0-9a-f]{64})\n?$/.exec(stream)?.[1]
    : undefined
}

/**
 * What a build engine has made becomes an image of its owner, once its labels are found to be that owner's. Until then it
 * has no name: where the platform dies in between, it is a step of a build as others are, and goes with these.
 */
export async function nameBuilt(
  { images, identity }: HandoverParts,
  id: string | undefined,
  { name, owner, signal }: { readonly name: string; readonly owner: Owner; readonly signal: AbortSignal }
): Promise<ImageInfo> {
  if (id === undefined) throw problems.imageArchive({ reason: 'it names an image of its own' })
  const seen = await images.inspect(id)
  if (seen === undefined) throw removedMeanwhile()
  const label = wrongLabel(seen.Config.Labels ?? {}, identity.ofImage(owner))
  if (label !== undefined) throw problems.buildLabels({ label })
  signal.throwIfAborted()
  try {
    await images.name(id, name)
  } catch (error) {
    throw (await images.inspect(id)) === undefined ? removedMeanwhile() : error
  }
  const named = await images.find(name)
  if (named?.id !== id) throw removedMeanwhile()
  return named
}

const wrongLabel = (
  labels: Readonly<Record<string, string>>,
  expected: Readonly<Record<string, string>>
): string | undefined =>
  Object.keys(expected).find(key => labels[key] !== expected[key]) ?? unexpectedLabel(labels, expected)

/** Without a name it is removed where a disk is short. The same remedy as for layers that have gone: all of it, once more. */
const removedMeanwhile = (): Error =>
  problems.imageIncomplete({ reason: 'the image was removed before it had its name' })
