import type { ContainerRuntime, ImageInfo, Owner } from 'busbar/api/runtime-docker'
import type { Log } from 'busbar/sdk'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pack } from 'tar-fs'
import type { BuildContext, BuildRequest } from '../api.js'
import { labelDockerfile } from './dockerfile.js'
import { problems } from '../problems.js'
import type { BuildLimits } from '../settings.js'

const dockerfile = 'Dockerfile'

export interface LabellingParts {
  readonly runtime: ContainerRuntime
  readonly usualLimits: BuildLimits
  readonly log: Log
}

/**
 * An image that a foreign program makes, as one of ours. Not every program can set labels, so it makes
 * an image under a name that only this application uses, and the engine puts the labels on top.
 */
export async function labelledImage (
  { runtime, usualLimits, log }: LabellingParts,
  { program, request }: { readonly program: string, readonly request: BuildRequest },
  context: BuildContext,
  make: (name: string) => Promise<void>
): Promise<ImageInfo> {
  const { applicationId, projectId, deploymentId, tag, scratch, limits = usualLimits } = request
  const owner: Owner = { projectId, applicationId, deploymentId }
  const made = unlabelledName(applicationId)
  // One that a killed build has left must not be taken for the result of this one.
  await runtime.removeImage(made)
  try {
    await make(made)
    if (await runtime.image(made) === undefined) throw problems.toolNoImage({ program, image: made })
    const text = labelDockerfile(`FROM ${made}\n`, await runtime.imageLabels(owner))
    return await runtime.build(await singleFile(join(scratch, 'label'), text), { tag, dockerfile, buildArgs: {}, owner, isLabelled: true, ...limits }, {
      signal: context.signal,
      onLine: line => context.log({ level: 'debug', stream: 'stdout', msg: line })
    })
  } finally {
    await runtime.removeImage(made).catch((error: unknown) => { log.warn({ err: error, applicationId, image: made }, 'the image of a build tool could not be removed') })
  }
}

/** The name under which a foreign program leaves its image: one build of an application runs at a time. */
export const unlabelledName = (applicationId: string): string => `busbar-build-${applicationId}:latest`

/** A build context of one file. */
async function singleFile (directory: string, text: string): Promise<Readable> {
  await mkdir(directory)
  await writeFile(join(directory, dockerfile), text)
  return Readable.from(pack(directory))
}
