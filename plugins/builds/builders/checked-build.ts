import type { Readable } from 'node:stream'
import type { Owner } from 'busbar/api/containers'
import type { ImageInfo, ImageService } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type { BuildContext, BuildLimits } from '../api.js'
import { addedFiles } from '../dockerfile/added-files.js'
import { BadDockerfile, quoted } from '../dockerfile/bad-dockerfile.js'
import { type GeneratedDockerfile, generateDockerfile, type RemoteCopies } from '../dockerfile/generate.js'
import type { Dockerfile } from '../dockerfile/instruction.js'
import { parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { type ImageUse, imagesOf, type Plan, planDockerfile } from '../dockerfile/plan.js'
import { isForPlatform } from '../dockerfile/platform.js'
import { type RemoteAdd, remoteAdds } from '../dockerfile/remote-files.js'
import { checkSize } from '../dockerfile/size-check.js'
import { checkTriggers } from '../dockerfile/triggers.js'
import { problems } from '../problems.js'
import { checkImageId, type ResolverParts, resolveImage } from '../registry/image-resolver.js'

/** A Dockerfile to be built for an application. */
interface CheckedBuild {
  readonly dockerfile: Dockerfile
  /** What its author calls it. */
  readonly name: string
  readonly tag: string
  readonly owner: Required<Pick<Owner, 'projectId' | 'applicationId' | 'deploymentId'>>
  readonly buildArgs: Readonly<Record<string, string>>
  /** What FROM may say without an ARG. */
  readonly automatic?: Readonly<Record<string, string>>
  readonly limits: BuildLimits
  readonly noCache?: boolean
  /** Images that this build has made itself, by name: their ids. */
  readonly own?: ReadonlyMap<string, string>
  /** Fetches what ADDs name by address; absent: none may. */
  readonly fetch?: (adds: readonly RemoteAdd[]) => Promise<RemoteCopies>
  /** Looks at the files of the context that ADDs name, and refuses what they must not unpack; absent: there are none. */
  readonly checkAdded?: (sources: readonly string[]) => Promise<void>
  /** The build context with this Dockerfile in it, and where in it. */
  readonly files: (dockerfile: string) => { readonly context: Readable; readonly dockerfile: string }
}

type Progress = BuildContext & { readonly onLine: (line: string) => void }
type Parts = ResolverParts & { readonly imageService: ImageService }

/** Reads a Dockerfile, before anything is looked up. */
export function readDockerfile(text: string, name: string): Dockerfile {
  try {
    return parseDockerfile(text)
  } catch (error) {
    throw explained(error, name)
  }
}

/**
 * Builds what is generated from a Dockerfile: each image in it is looked up, is one that the application may use, and
 * is named by its id from then on, which cannot be made to mean another one.
 */
export async function buildChecked(
  parts: Parts,
  build: CheckedBuild,
  progress: Progress
): Promise<ImageInfo> {
  const { name, tag, owner, buildArgs, limits, noCache } = build
  for (let attempt = 1; ; attempt++) {
    const { generated, triggering } = await generate(parts, build, progress).catch((error: unknown) => {
      throw explained(error, name)
    })
    if (triggering.length > 0) progress.log({ level: 'info', msg: noCacheNote(triggering) })
    const { context, dockerfile } = build.files(generated.text)
    const options = {
      tag,
      dockerfile,
      buildArgs,
      owner,
      isLabelled: true,
      generated: { name, steps: generated.steps },
      // The engine carries triggers out before the label that keeps the caches of applications apart.
      noCache: noCache === true || triggering.length > 0,
      ...limits
    } as const
    try {
      return await parts.imageService.build(context, options, progress)
    } catch (error) {
      const lost = losses.find(({ isMeant, attempts }) => isMeant(error) && attempt < attempts)
      if (lost === undefined) throw error
      progress.log({ level: 'info', msg: `${lost.msg}; building again` })
    }
  }
}

async function generate(
  parts: Parts,
  { dockerfile, buildArgs, automatic, owner, own, fetch, checkAdded }: CheckedBuild,
  context: BuildContext
): Promise<{
  readonly generated: GeneratedDockerfile
  /** The names of base images that carry triggers. */
  readonly triggering: readonly string[]
}> {
  const plan = planDockerfile(dockerfile, buildArgs, automatic)
  const images = await resolveImages(parts, plan, { ...owner, own: own ?? new Map() }, context)
  const baseImage = (use: ImageUse): ImageInfo => imageOf(images, use)
  checkSize(plan, buildArgs, baseImage)
  await checkAdded?.(addedFiles(plan, baseImage))
  const adds = remoteAdds(plan, buildArgs, baseImage)
  const remoteFiles: RemoteCopies = adds.length === 0 || fetch === undefined ? new Map() : await fetch(adds)
  const generated = generateDockerfile(plan, {
    labels: await parts.imageService.imageLabels(owner),
    remoteFiles,
    imageId: use => baseImage(use).id
  })
  const triggering = imagesOf(plan).filter(use => use.isBase && (baseImage(use).onBuild ?? []).length > 0)
  return { generated, triggering: [...new Set(triggering.map(({ reference }) => reference))] }
}

const noCacheNote = (triggering: readonly string[]): string =>
  `Building without the cache: ${triggering.slice(0, 5).join(', ')} carries triggers (ONBUILD), whose steps cannot be told from those of other applications`

async function resolveImages(
  parts: Parts,
  plan: Plan,
  {
    projectId,
    applicationId,
    deploymentId,
    own
  }: CheckedBuild['owner'] & { readonly own: ReadonlyMap<string, string> },
  context: BuildContext
): Promise<ReadonlyMap<string, ImageInfo>> {
  const images = new Map<string, ImageInfo>()
  const { escapeChar } = plan.dockerfile
  for (const use of imagesOf(plan)) {
    if (images.has(keyOf(use))) continue
    const ownId = own.get(use.reference)
    const image =
      ownId === undefined
        ? (await resolveImage(parts, { ...use, projectId, applicationId, deploymentId }, context)).image
        : await parts.imageService.image(ownId)
    if (image === undefined) continue
    if (use.platform !== undefined && !isForPlatform(image.platform ?? '', use.platform))
      throw new BadDockerfile(use.line, otherPlatform(use.reference, use.platform, image.platform))
    images.set(keyOf(use), image)
  }
  for (const { base, scope } of plan.stages) {
    if (base.kind !== 'image') continue
    const { onBuild = [] } = imageOf(images, base.use)
    for (const id of checkTriggers(onBuild, base.use.reference, scope, base.use.line, escapeChar))
      await checkImageId(parts, id, { applicationId, deploymentId })
  }
  return images
}

const otherPlatform = (reference: string, wanted: string, platform = 'nothing that it says'): string =>
  `--platform=${quoted(wanted)}: images are taken as they are made for this machine, and ${reference} is made for ${platform} here; leave --platform out, or name an image that is made for ${wanted} alone, by its digest`

const keyOf = ({ reference, platform = '' }: ImageUse): string => `${platform} ${reference}`

function imageOf(images: ReadonlyMap<string, ImageInfo>, use: ImageUse): ImageInfo {
  const image = images.get(keyOf(use))
  if (image === undefined)
    throw new BadDockerfile(use.line, `the image ${use.reference} is not on the engine any more: build again`)
  return image
}

/** What a build fails by that somebody has removed an image, and how often it is begun all the same. */
const losses: ReadonlyArray<{
  readonly isMeant: (error: unknown) => boolean
  readonly attempts: number
  readonly msg: string
}> = [
  {
    // What is generated names nothing that is not on the engine, so it asks a registry only for what has gone since.
    isMeant: error =>
      isProblem(error) &&
      (/^E_(?:REGISTRY|IMAGE)_/.test(error.code) || /no such image: sha256:/i.test(error.message)),
    attempts: 2,
    msg: 'An image with which this build began was removed meanwhile'
  },
  {
    // The classic builder lists the images that continue the same one and then reads each; from nothing go all bases on,
    // and the empty images of host tools, which come and go. The steps so far are in the cache.
    isMeant: error => isProblem(error) && /unable to find image "sha256:/.test(error.message),
    attempts: 5,
    msg: 'An image in which the engine looked for a cached step was removed by somebody meanwhile'
  }
]

/** Faults of a Dockerfile in the words of a problem. */
function explained(error: unknown, dockerfile: string): unknown {
  if (!(error instanceof BadDockerfile)) return error
  const { line, message: reason, fault } = error
  if (fault === 'buildkit') return problems.dockerfileBuildKit({ dockerfile, line, reason })
  if (fault === 'label') return problems.dockerfileLabel({ dockerfile, line, label: reason })
  return problems.badDockerfile({ dockerfile, line, reason })
}
