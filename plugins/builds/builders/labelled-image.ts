import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { ImageInfo } from 'busbar/api/images'
import type { Log } from 'busbar/sdk'
import { pack } from 'tar-fs'
import type { BuildContext, BuildRequest } from '../api.js'
import { problems } from '../problems.js'
import { type ImageNames, unlabelledName } from '../registry/image-names.js'
import type { ResolverParts } from '../registry/image-resolver.js'
import { findByName } from '../registry/local-image.js'
import type { BuildLimits } from '../settings.js'
import { buildChecked, readDockerfile } from './checked-build.js'

export interface LabellingParts extends ResolverParts {
  readonly names: ImageNames
  readonly usualLimits: BuildLimits
  readonly log: Log
}

/**
 * An image that a foreign program makes, as one of ours. Not every program can set labels, so it makes
 * an image under a name that only this application uses, and the engine puts the labels on top.
 */
export async function labelledImage(
  parts: LabellingParts,
  { program, request }: { readonly program: string; readonly request: BuildRequest },
  context: BuildContext,
  make: (name: string) => Promise<void>
): Promise<ImageInfo> {
  const { imageService, usualLimits, log, names } = parts
  const { applicationId, projectId, deploymentId, tag, scratch, limits = usualLimits } = request
  const made = unlabelledName(applicationId, await names.tokenOf(applicationId))
  // One that a killed build has left must not be taken for the result of this one.
  await imageService.removeImage(made)
  try {
    await make(made)
    const image = await findByName(imageService, made)
    if (image === undefined) throw problems.toolNoImage({ program, image: made })
    const directory = join(scratch, 'label')
    await mkdir(directory)
    const name = 'Dockerfile'
    const files = (text: string): { readonly context: Readable; readonly dockerfile: string } => ({
      context: singleFile(directory, name, text),
      dockerfile: name
    })
    return await buildChecked(
      parts,
      {
        dockerfile: readDockerfile(`FROM ${made}\n`, name),
        name,
        tag,
        owner: { projectId, applicationId, deploymentId },
        buildArgs: {},
        limits,
        own: new Map([[made, image.id]]),
        files
      },
      {
        log: context.log,
        signal: context.signal,
        onLine: line => context.log({ level: 'debug', stream: 'stdout', msg: line })
      }
    )
  } finally {
    await imageService.removeImage(made).catch((error: unknown) => {
      log.warn({ err: error, applicationId, image: made }, 'the image of a build tool could not be removed')
    })
  }
}

/** A build context of one file. */
function singleFile(directory: string, name: string, text: string): Readable {
  const tar = pack(directory, {
    finalize: false,
    finish: () => tar.entry({ name, mode: 0o644 }, text, () => tar.finalize())
  })
  return Readable.from(tar)
}
