import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import { isProblem } from 'busbar/sdk'
import type { Builder, BuildContext, BuildLimits, BuildRequest } from '../api.js'
import { checkOutsideImages, outsideImages } from './base-images.js'
import { chooseFiles, packFiles } from '../context/build-context.js'
import { declaredArguments, labelDockerfile } from './dockerfile.js'
import type { PrivateImages } from '../registry/private-images.js'
import { problems } from '../problems.js'
import { cleanPath, describeDockerfiles, readSource } from '../context/source-tree.js'

/** Builds with the Dockerfile of the source. */
export class DockerfileBuilder implements Builder {
  constructor (private readonly runtime: ContainerRuntime, private readonly usualLimits: BuildLimits, private readonly privateImages: PrivateImages) {}

  async build (request: BuildRequest, { log, signal }: BuildContext): Promise<ImageInfo> {
    const { applicationId, deploymentId, projectId, directory, tag, limits = this.usualLimits } = request
    const dockerfile = cleanPath(request.dockerfilePath === '' ? 'Dockerfile' : request.dockerfilePath, 'the Dockerfile path')
    const text = await readSource(directory, dockerfile)
    if (text === undefined) throw problems.dockerfileMissing({ path: dockerfile, found: await describeDockerfiles(directory) })
    const { buildArgs, secret } = chooseArguments(declaredArguments(text), request.variables)
    for (const name of secret) {
      log({ level: 'warning', msg: `ARG ${name} is left empty: the variable is secret, and build arguments can be read from the image` })
    }
    await checkOutsideImages(outsideImages(text, buildArgs), applicationId, { runtime: this.runtime, privateImages: this.privateImages }, { log, signal })
    log({ level: 'info', msg: `Building ${tag} with ${dockerfile} (${Math.round(limits.memoryBytes / 2 ** 20)} MiB of memory, ${limits.cpus} CPUs)` })
    const owner = { projectId, applicationId, deploymentId }
    const files = await chooseFiles(directory, dockerfile, signal)
    if (files.unreadable.length > 0) log({ level: 'warning', msg: unreadableNote(files.unreadable) })
    const build = async (content: string, isLabelled?: true): Promise<ImageInfo> =>
      await this.runtime.build(packFiles(directory, files, dockerfile, content), { tag, dockerfile, buildArgs, owner, isLabelled, noCache: request.noCache, ...limits },
        { signal, onLine: line => log({ level: 'info', stream: 'stdout', msg: line }) })
    const labelled = labelDockerfile(text, await this.runtime.imageLabels(owner))
    try {
      return await build(labelled, true)
    } catch (error) {
      if (isProblem(error) && /no such image: sha256:/i.test(error.message)) {
        log({ level: 'info', msg: 'A step of an earlier build, with which this one began, was removed meanwhile; building again' })
        return await build(labelled, true)
      }
      if (!isProblem(error) || error.code !== 'E_BUILD_DOCKERFILE') throw error
      // As the user wrote it, so that the line in the error is a line of the user's file.
      return await build(text)
    }
  }
}

const unreadableNote = (paths: readonly string[]): string =>
  `${paths.length} file${paths.length === 1 ? '' : 's'} or directories are left out of the build, because their names are not UTF-8: ${paths.slice(0, 5).map(path => JSON.stringify(path)).join(', ')}; rename them`

/** The variables a Dockerfile asks for by ARG; those that are secret are only named. */
export function chooseArguments (declared: ReadonlySet<string>, variables: BuildRequest['variables']): { buildArgs: Record<string, string>, secret: string[] } {
  const wanted = variables.filter(({ key }) => declared.has(key))
  return {
    buildArgs: Object.fromEntries(wanted.filter(({ isSecret }) => !isSecret).map(({ key, value }) => [key, value])),
    secret: wanted.filter(({ isSecret }) => isSecret).map(({ key }) => key)
  }
}
