import { join } from 'node:path'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import type { BuildContext, Builder, BuildLimits, BuildRequest } from '../api.js'
import { chooseFiles, contextDockerfile, packFiles } from '../context/build-context.js'
import { cleanPath, describeDockerfiles, readSource } from '../context/source-tree.js'
import type { RemoteCopies } from '../dockerfile/generate.js'
import { declaredArguments } from '../dockerfile/parse-dockerfile.js'
import type { RemoteAdd } from '../dockerfile/remote-files.js'
import type { AvailableEngines } from '../engines/available-engines.js'
import { syntaxOf } from '../engines/dockerfile-syntax.js'
import type { EngineProgram } from '../engines/engine-program.js'
import type { EngineUsage } from '../engines/engine-usage.js'
import { buildIsolated } from '../engines/isolated-build.js'
import type { ProjectEngines } from '../engines/project-engines.js'
import { problems } from '../problems.js'
import { builderPrefix } from '../registry/image-names.js'
import type { ResolverParts } from '../registry/image-resolver.js'
import { type ArchiveRules, checkArchives } from './added-archives.js'
import { buildChecked, readDockerfile } from './checked-build.js'
import { FetchedFiles, type FetchRules, filesFolder } from './fetched-files.js'

interface DockerfileParts extends ResolverParts {
  readonly availableEngines: Pick<AvailableEngines, 'choose'>
  readonly engines: Pick<ProjectEngines, 'use'>
  readonly engineUsage: Pick<EngineUsage, 'during'>
  readonly runtime: ContainerRuntime
  readonly usualLimits: BuildLimits
  /** For the addresses of ADD. */
  readonly fetching: FetchRules
  readonly archives: ArchiveRules
}

/** Builds with the Dockerfile of the source. */
export class DockerfileBuilder implements Builder {
  constructor(private readonly parts: DockerfileParts) {}

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    const { log, signal } = context
    const {
      applicationId,
      deploymentId,
      projectId,
      directory,
      tag,
      noCache,
      limits = this.parts.usualLimits
    } = request
    const name = cleanPath(
      request.dockerfilePath === '' ? 'Dockerfile' : request.dockerfilePath,
      'the Dockerfile path'
    )
    const text = await readSource(directory, name)
    if (text === undefined)
      throw problems.dockerfileMissing({ path: name, found: await describeDockerfiles(directory) })
    const choice = await this.parts.availableEngines.choose(request, context)
    if (choice.kind === 'project') return await this.#buildIsolated({ name, text }, choice, request, context)
    const dockerfile = readDockerfile(text, name)
    if (dockerfile.syntax !== null)
      log({
        level: 'warning',
        msg: `The line # syntax= of ${name} has no effect: images are built by the engine's classic builder`
      })
    const { buildArgs, secret } = chooseArguments(declaredArguments(dockerfile), request.variables)
    for (const variable of secret) {
      log({
        level: 'warning',
        msg: `ARG ${variable} is left empty: the variable is secret, and build arguments can be read from the image`
      })
    }
    log({
      level: 'info',
      msg: `Building ${tag} with ${name} (${Math.round(limits.memoryBytes / 2 ** 20)} MiB of memory, ${limits.cpus} CPUs)`
    })
    const files = await chooseFiles(directory, name, signal)
    if (files.unreadable.length > 0) log({ level: 'warning', msg: unreadableNote(files.unreadable) })
    const fetched = new FetchedFiles(this.parts.fetching, join(request.scratch, 'fetched'), name)
    const build = async (fetch: (adds: readonly RemoteAdd[]) => Promise<RemoteCopies>): Promise<ImageInfo> =>
      await buildChecked(
        this.parts,
        {
          dockerfile,
          name,
          tag,
          owner: { projectId, applicationId, deploymentId },
          buildArgs,
          limits,
          noCache,
          fetch,
          checkAdded: async sources =>
            await checkArchives(
              sources,
              { directory, included: files.included, scratch: request.scratch, dockerfile: name },
              this.parts.archives,
              context
            ),
          files: content => ({ context: packFiles(directory, files, content), dockerfile: contextDockerfile })
        },
        { ...context, onLine: line => log({ level: 'info', stream: 'stdout', msg: line }) }
      )
    const image = filesImage(request)
    let isMade = false
    try {
      return await build(async adds => {
        for (const add of adds) await fetched.fetch(add, context)
        isMade = true
        const { id } = await this.#imageOf(fetched, image, request, context)
        return new Map(
          adds.map(({ instruction, addresses }) => [
            instruction,
            { from: id, sources: addresses.map(address => fetched.sourceOf(address)) }
          ])
        )
      })
    } finally {
      if (isMade)
        await this.parts.imageService.removeImage(image).catch(() => {
          log({ level: 'warning', msg: `The image ${image} of this build could not be removed` })
        })
    }
  }

  async #buildIsolated(
    { name, text }: { readonly name: string; readonly text: string },
    engine: { readonly program: EngineProgram; readonly image: string },
    request: BuildRequest,
    context: BuildContext
  ): Promise<ImageInfo> {
    const { applicationId, deploymentId, projectId, directory, tag, noCache, variables } = request
    const { limits = this.parts.usualLimits } = request
    const { log, signal } = context
    const shown = `${Math.round(limits.memoryBytes / 2 ** 20)} MiB of memory, ${limits.cpus} CPUs`
    log({ level: 'info', msg: `Building ${tag} with ${name} (${shown})` })
    const syntax = syntaxOf(text)
    if (syntax !== null && !/^(?:docker\.io\/)?docker\/dockerfile(?:$|[:@])/.test(syntax))
      log({
        level: 'warning',
        msg: `The front-end ${syntax.slice(0, 200)} of ${name} is not used: the build engine reads the Dockerfile itself`
      })
    const files = await chooseFiles(directory, name, signal)
    if (files.unreadable.length > 0) log({ level: 'warning', msg: unreadableNote(files.unreadable) })
    return await buildIsolated(
      this.parts,
      engine,
      {
        tag,
        owner: { projectId, applicationId, deploymentId },
        name,
        text,
        context: () => packFiles(directory, files),
        buildArgs: namedIn(
          text,
          variables.filter(({ isSecret }) => !isSecret)
        ),
        secrets: namedIn(text, variables),
        noCache,
        limits
      },
      context
    )
  }

  /**
   * Fetched files as an image of their own, from which the build copies: in its build context they would be part of
   * what `COPY .` takes.
   */
  async #imageOf(
    fetched: FetchedFiles,
    tag: string,
    { applicationId, deploymentId, projectId, limits = this.parts.usualLimits }: BuildRequest,
    context: BuildContext
  ): Promise<ImageInfo> {
    return await buildChecked(
      this.parts,
      {
        dockerfile: readDockerfile(`FROM scratch\nCOPY ${filesFolder} /\n`, contextDockerfile),
        name: contextDockerfile,
        tag,
        owner: { projectId, applicationId, deploymentId },
        buildArgs: {},
        limits,
        files: content => ({ context: fetched.context(content), dockerfile: contextDockerfile })
      },
      {
        log: context.log,
        signal: context.signal,
        onLine: line => context.log({ level: 'debug', stream: 'stdout', msg: line })
      }
    )
  }
}

/** Those that the Dockerfile may ask for: it says their names somewhere. */
const namedIn = (text: string, variables: BuildRequest['variables']): Record<string, string> =>
  Object.fromEntries(variables.filter(({ key }) => text.includes(key)).map(({ key, value }) => [key, value]))

/** A name that no Dockerfile may use. What a killed build leaves goes with the images of its application. */
const filesImage = ({ applicationId, deploymentId }: BuildRequest): string =>
  `${builderPrefix}${applicationId}-files:${deploymentId}`

const unreadableNote = (paths: readonly string[]): string =>
  `${paths.length} file${paths.length === 1 ? '' : 's'} or directories are left out of the build, because their names are not UTF-8: ${paths
    .slice(0, 5)
    .map(path => JSON.stringify(path))
    .join(', ')}; rename them`

/** The variables a Dockerfile asks for by ARG; those that are secret are only named. */
export function chooseArguments(
  declared: ReadonlySet<string>,
  variables: BuildRequest['variables']
): { buildArgs: Record<string, string>; secret: string[] } {
  const wanted = variables.filter(({ key }) => declared.has(key))
  return {
    buildArgs: Object.fromEntries(
      wanted.filter(({ isSecret }) => !isSecret).map(({ key, value }) => [key, value])
    ),
    secret: wanted.filter(({ isSecret }) => isSecret).map(({ key }) => key)
  }
}
