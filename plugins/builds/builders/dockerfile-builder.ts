import { join } from 'node:path'
import { machineFactsMs } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import type { BuildContext, Builder, BuildRequest } from '../api.js'
import { chooseFiles, contextDockerfile, packFiles, unreadableNote } from '../context/build-context.js'
import { cleanPath, describeDockerfiles, readSource } from '../context/source-tree.js'
import type { RemoteCopies } from '../dockerfile/generate.js'
import { declaredArguments } from '../dockerfile/parse-dockerfile.js'
import { isForPlatform, platformArguments } from '../dockerfile/platform.js'
import type { RemoteAdd } from '../dockerfile/remote-files.js'
import { mountsSsh } from '../dockerfile/ssh-mounts.js'
import { upToStage } from '../dockerfile/target.js'
import { syntaxOf } from '../engines/dockerfile-syntax.js'
import type { DockerfileWork } from '../engines/dockerfile-work.js'
import { problems } from '../problems.js'
import { builderPrefix } from '../registry/image-names.js'
import { type ArchiveRules, checkArchives } from './added-archives.js'
import { buildChecked, readDockerfile } from './checked-build.js'
import { buildInEngineOrClassic, type EngineParts, shownLimits } from './engine-or-classic.js'
import { FetchedFiles, type FetchRules, filesFolder } from './fetched-files.js'

interface DockerfileParts extends EngineParts {
  /** For the addresses of ADD. */
  readonly fetching: FetchRules
  readonly archives: ArchiveRules
}

interface DockerfileText {
  /** Where it is in the source. */
  readonly name: string
  readonly text: string
}

/** Builds with the Dockerfile of the source. */
export class DockerfileBuilder implements Builder {
  constructor(private readonly parts: DockerfileParts) {}

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    const { directory } = request
    const name = cleanPath(
      request.dockerfilePath === '' ? 'Dockerfile' : request.dockerfilePath,
      'the Dockerfile path'
    )
    const text = await readSource(directory, name)
    if (text === undefined)
      throw problems.dockerfileMissing({ path: name, found: await describeDockerfiles(directory) })
    return await buildInEngineOrClassic(
      this.parts,
      request,
      {
        engine: async () => await this.#forEngine({ name, text }, request, context),
        classic: async () => await this.#buildClassic({ name, text }, request, context)
      },
      context
    )
  }

  async #buildClassic(
    { name, text }: DockerfileText,
    request: BuildRequest,
    context: BuildContext
  ): Promise<ImageInfo> {
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
    const read = readDockerfile(text, name)
    const automatic = platformArguments(await this.#platformFor(request))
    const dockerfile = request.target === undefined ? read : upToStage(read, { target: request.target, name })
    if (dockerfile.syntax !== null)
      log({
        level: 'warning',
        msg: `The line # syntax= of ${name} has no effect: images are built by the engine's classic builder`
      })
    const declared = declaredArguments(dockerfile)
    const { buildArgs: chosen, secret } = chooseArguments(declared, request.variables)
    const platforms = Object.entries(automatic).filter(([key]) => declared.has(key))
    const buildArgs = { ...Object.fromEntries(platforms), ...chosen }
    for (const variable of secret) {
      log({
        level: 'warning',
        msg: `ARG ${variable} is left empty: the variable is secret, and build arguments can be read from the image`
      })
    }
    log({ level: 'info', msg: `Building ${tag} with ${name} (${shownLimits(limits)})` })
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
          automatic,
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

  async #forEngine(
    { name, text }: DockerfileText,
    { directory, tag, variables, sshKey, target, platform, limits = this.parts.usualLimits }: BuildRequest,
    { log, signal }: BuildContext
  ): Promise<DockerfileWork> {
    log({ level: 'info', msg: `Building ${tag} with ${name} (${shownLimits(limits)})` })
    const syntax = syntaxOf(text)
    if (syntax !== null && !/^(?:docker\.io\/)?docker\/dockerfile(?:$|[:@])/.test(syntax))
      log({
        level: 'warning',
        msg: `The front-end ${syntax.slice(0, 200)} of ${name} is not used: the build engine reads the Dockerfile itself`
      })
    const isMounted = mountsSsh(text)
    if (isMounted && sshKey === undefined)
      log({
        level: 'warning',
        msg: `${name} has RUN --mount=type=ssh, and the application has no deploy key: such steps run without one; make it with POST …/deploy-key`
      })
    const files = await chooseFiles(directory, name, signal)
    if (files.unreadable.length > 0) log({ level: 'warning', msg: unreadableNote(files.unreadable) })
    return {
      name,
      text,
      context: () => packFiles(directory, files),
      buildArgs: namedIn(
        text,
        variables.filter(({ isSecret }) => !isSecret)
      ),
      secrets: namedIn(text, variables),
      ...(isMounted && sshKey !== undefined && { sshKey }),
      ...(target !== undefined && { target }),
      ...(platform !== undefined && { platform })
    }
  }

  /** The classic builder makes what its machine runs. */
  async #platformFor({ platform: wanted }: BuildRequest): Promise<string> {
    const { platform: machine } = await this.parts.runtime.info({ maxAgeMs: machineFactsMs })
    if (wanted !== undefined && !isForPlatform(machine, wanted))
      throw problems.platformOfClassic({ wanted, machine })
    return machine
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
