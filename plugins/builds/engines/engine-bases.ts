import { createHash } from 'node:crypto'
import type { Owner } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import { isProblem, type Problem } from 'busbar/sdk'
import type { BuildContext, EngineBase, EngineProgram } from '../api.js'
import { isForPlatform } from '../dockerfile/platform.js'
import { findNamed, type ResolverParts } from '../registry/image-resolver.js'
import { findPrivateBase } from '../registry/private-base.js'
import { baseDirectory, useBase } from './base-pruning.js'
import { BadResult, type ContainerFiles } from './container-files.js'
import { basesPath } from './engine-program.js'

/** A base, and its id on the engine of the platform. */
interface SuppliedBase extends EngineBase {
  readonly id: string
}

interface Supply {
  readonly bases: readonly SuppliedBase[]
  /** Why an account did not get an image, by its name: what helps if it was one that the build needs. */
  readonly refusals: ReadonlyMap<string, Problem>
}

/**
 * Gives a build engine what these names stand for and it cannot fetch itself. What an operator has put on the engine of the
 * platform under them everybody may build upon; what a registry hands out to an account alone comes by that of the
 * project or the installation, which the build engine never sees. Each is copied once for each project.
 */
export async function supplyBases(
  parts: ResolverParts,
  {
    files,
    program,
    workDirectory,
    names,
    platform,
    owner
  }: {
    readonly files: ContainerFiles
    readonly program: EngineProgram
    /** Of the build alone. */
    readonly workDirectory: string
    readonly names: readonly string[]
    /** What the build is for; absent: the machine of the engine. */
    readonly platform?: string
    readonly owner: Required<Pick<Owner, 'projectId' | 'applicationId' | 'deploymentId'>>
  },
  context: BuildContext
): Promise<Supply> {
  const supplied: SuppliedBase[] = []
  const refusals = new Map<string, Problem>()
  for (const name of names) {
    const operators = await operatorsImage(parts, name, owner.applicationId)
    const found = operators ?? (await findPrivateBase(parts, { name, ...owner }, context))
    if (found === undefined) continue
    if (isProblem(found)) {
      refusals.set(name, found)
      continue
    }
    const image = found
    // Each kind keeps them in its own way, and a project may change from one to the other.
    const directory = baseDirectory(program.kind, image.id)
    const isThere = (await files.run(useBase(directory, workDirectory)))[0] === 'yes'
    if (!isThere) {
      context.log({
        level: 'info',
        msg:
          operators === undefined
            ? `Giving ${name} to the build engine of this project`
            : `Giving ${name} to the build engine of this project, as it is on this machine`
      })
      const part = `${workDirectory}/base-${image.id.slice('sha256:'.length)}`
      await add(parts, { files, program, part, directory, image }, context)
    }
    const digest = program.takes === 'layout' ? await manifestDigest(files, directory) : image.id
    const foreignTo = foreignPlatform(image, platform)
    supplied.push({ name, id: image.id, digest, directory, ...(foreignTo !== undefined && { foreignTo }) })
  }
  return { bases: supplied, refusals }
}

/** As BuildKit writes what an image is made for, where a build is for another machine. */
const foreignPlatform = ({ platform = '' }: ImageInfo, wanted: string | undefined): string | undefined =>
  wanted === undefined || isForPlatform(platform, wanted) ? undefined : platform.replace('arm64/v8', 'arm64')

/** A name that no image can have stands for none: the build engine will say so. */
async function operatorsImage(
  parts: ResolverParts,
  name: string,
  applicationId: string
): Promise<ImageInfo | undefined> {
  try {
    const image = await findNamed(parts, name, applicationId)
    return image?.builtFor === undefined ? image : undefined
  } catch (error) {
    if (isProblem(error) && error.status < 500) return undefined
    throw error
  }
}

interface Adding {
  readonly files: ContainerFiles
  readonly program: EngineProgram
  /** Where it is made ready: another build may be doing the same. */
  readonly part: string
  readonly directory: string
  readonly image: ImageInfo
}

async function add(
  { imageService }: Pick<ResolverParts, 'imageService'>,
  { files, program, part, directory, image }: Adding,
  { signal }: BuildContext
): Promise<void> {
  await files.run(['mkdir', '-p', part, `${basesPath}/${program.kind}`])
  await files.unpack(part, await imageService.save(image.id, signal))
  if (program.takes === 'layout') await asLayout(files, part)
  const command = program.addBase?.(part)
  if (command !== undefined) await files.run(command.argv, command.env)
  await files.run(['sh', '-c', 'mv -T "$0" "$1" 2>/dev/null || test -d "$1"', part, directory])
}

const maxConfigBytes = 8 * 2 ** 20
const indexType = 'application/vnd.oci.image.index.v1+json'
const manifestType = 'application/vnd.oci.image.manifest.v1+json'

/** Of what an engine has saved. Engines since 25 save a layout, which is an archive as well. */
async function asLayout(files: ContainerFiles, directory: string): Promise<void> {
  const [saved] = JSON.parse(
    (await files.read(`${directory}/manifest.json`, maxConfigBytes)).toString()
  ) as ReadonlyArray<{
    readonly Config: string
    readonly Layers: readonly string[]
  }>
  if (saved === undefined) throw new BadResult('the engine has saved no image')
  const config = await files.read(`${directory}/${saved.Config}`, maxConfigBytes)
  const { rootfs } = JSON.parse(config.toString()) as {
    readonly rootfs: { readonly diff_ids: readonly string[] }
  }
  const paths = saved.Layers.map(layer => `${directory}/${layer}`)
  const sizes = await files.sizesOf(paths)
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        digest: digestOf(config),
        size: config.length
      },
      layers: rootfs.diff_ids.map((digest, at) => ({
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest,
        size: sizes[at] ?? 0
      }))
    })
  )
  const blobs = `${directory}/blobs/sha256`
  // Equal layers are there once.
  await files.run([
    'sh',
    '-c',
    'mkdir -p "$0"; while [ $# -gt 0 ]; do [ -e "$0/$2" ] || ln "$(readlink -f "$1")" "$0/$2"; shift 2; done',
    blobs,
    ...rootfs.diff_ids.flatMap((digest, at) => [paths[at] ?? '', hexOf(digest)])
  ])
  await files.write(blobs, { [hexOf(digestOf(config))]: config, [hexOf(digestOf(manifest))]: manifest })
  await files.write(directory, {
    'oci-layout': JSON.stringify({ imageLayoutVersion: '1.0.0' }),
    'index.json': JSON.stringify({
      schemaVersion: 2,
      mediaType: indexType,
      manifests: [{ mediaType: manifestType, digest: digestOf(manifest), size: manifest.length }]
    })
  })
}

async function manifestDigest(files: ContainerFiles, directory: string): Promise<string> {
  const { manifests } = JSON.parse(
    (await files.read(`${directory}/index.json`, maxConfigBytes)).toString()
  ) as {
    readonly manifests: ReadonlyArray<{ readonly digest: string }>
  }
  const [manifest] = manifests
  if (manifest === undefined) throw new BadResult('a base has no manifest')
  return manifest.digest
}

const hexOf = (digest: string): string => digest.slice('sha256:'.length)
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
