import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import {
  type BuildContext,
  type Builder,
  type BuilderCache,
  type BuildRequest,
  buildpacksVolumePrefixes
} from '../api.js'
import { packTree, selectEntries, unreadableNote } from '../context/build-context.js'
import type { BuildpacksWork, GivenBuildpack } from '../engines/buildpacks-work.js'
import type { ClassicWay, OnlyKind } from '../engines/engine-choice.js'
import type { HostRules } from '../network/host-resolution.js'
import { findNamed } from '../registry/image-resolver.js'
import type { RegistryGate } from '../registry/registry-gate.js'
import { explainDenied } from '../tool-output.js'
import { checkBuildpacks, imageOfBuildpack, isImage, withoutScheme } from './buildpack-reference.js'
import { CommandLineTool, type ToolParts } from './command-line-tool.js'
import { buildInEngineOrClassic, type EngineParts, shownLimits } from './engine-or-classic.js'
import { type LabellingParts, labelledImage } from './labelled-image.js'
import { fetchBuildpacks } from './remote-buildpacks.js'
import { checkToolImage, resolveToolImage } from './tool-images.js'
import { type PassedVariables, passVariables, warnOfWithheld } from './tool-variables.js'

const program = 'pack'
/** It has no option for caps (buildpacks/pack#207), and labels each container in which it builds. */
const madeByPack = 'author=pack'
/** As many as a step of any other build may have. */
const maxProcesses = 4096

const pack = {
  program,
  what: 'it builds applications with Cloud Native Buildpacks',
  install:
    'Install it from https://buildpacks.io/docs/for-platform-operators/how-to/integrate-ci/pack/: on Linux, unpack pack-v…-linux.tgz of https://github.com/buildpacks/pack/releases into /usr/local/bin'
}

const classicWay: ClassicWay = {
  name: 'pack, on the Docker Engine that runs the applications',
  lack: 'where only the containers in which it builds are limited',
  isClassicBuilder: false
}

const only: OnlyKind = {
  kind: 'dockerd',
  why: 'pack needs a Docker Engine, which a BuildKit is not'
}

interface BuildpacksParts extends ToolParts, LabellingParts, EngineParts {
  /** For applications that choose none. */
  readonly builderImage: string
  readonly hosts: HostRules
  readonly gate: RegistryGate
}

/** Builds without a Dockerfile, by `pack build`. Two volumes of each application keep what the next build can use. */
export class BuildpacksBuilder implements Builder {
  readonly #tool: CommandLineTool
  readonly cache: BuilderCache

  constructor(private readonly parts: BuildpacksParts) {
    this.#tool = new CommandLineTool(parts, pack)
    this.cache = volumeCache(parts.runtime)
  }

  async unavailable(): Promise<string | null> {
    return await this.#tool.unavailable()
  }

  /** What may be a registry's buildpack, a folder or an image is for pack to find out: an image only where it is public. */
  async #admit(references: readonly string[], applicationId: string, context: BuildContext): Promise<void> {
    for (const reference of references) {
      const name = imageOfBuildpack(reference)
      if (name !== null && (await findNamed(this.parts, name, applicationId)) === undefined)
        await this.parts.gate.admit(name, context.signal)
    }
  }

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    await this.#tool.require()
    await checkBuildpacks(request.customBuildpacks, request.directory)
    const passed = passVariables(request.variables, { withSecrets: true })
    warnOfWithheld(passed, program, context)
    return await buildInEngineOrClassic(
      this.parts,
      request,
      {
        engine: async () => await this.#forEngine(request, passed, context),
        classic: async () => await this.#buildClassic(request, passed, context),
        classicWay,
        only
      },
      context
    )
  }

  /** There it runs, too, and asks that engine for its containers. */
  async #forEngine(
    request: BuildRequest,
    passed: PassedVariables,
    context: BuildContext
  ): Promise<BuildpacksWork> {
    const { applicationId, directory, scratch, customBuildpacks, limits = this.parts.usualLimits } = request
    const builder = request.builderImage ?? this.parts.builderImage
    const folder = join(scratch, 'buildpacks')
    const fetched = await fetchBuildpacks(customBuildpacks, folder, this.parts.hosts, context)
    const buildpacks: GivenBuildpack[] = []
    for (const [at, reference] of customBuildpacks.entries()) {
      const file = fetched[at]
      const image = isImage(reference) ? withoutScheme(reference) : imageOfBuildpack(reference)
      if (file !== undefined && file !== reference) buildpacks.push({ reference, file })
      // What the repository has under a name comes first.
      else if (image === null || (!isImage(reference) && existsSync(join(directory, reference))))
        buildpacks.push({ reference })
      else {
        const name = await checkToolImage(image, request, this.parts)
        buildpacks.push({ reference, image: { name, isCertain: isImage(reference) } })
      }
    }
    const { included, unreadable } = await selectEntries(directory, [], context.signal)
    if (unreadable.length > 0) context.log({ level: 'warning', msg: unreadableNote(unreadable) })
    context.log({
      level: 'info',
      msg: `Building ${request.tag} with pack, ${shownParts(builder, customBuildpacks)} (${shownLimits(limits)})`
    })
    return {
      tool: await this.#tool.file(),
      context: () => packTree(directory, included, {}),
      builder: await checkToolImage(builder, request, this.parts),
      buildpacks,
      variables: passed,
      caches: cacheVolumes(applicationId)
    }
  }

  async #buildClassic(
    request: BuildRequest,
    passed: PassedVariables,
    context: BuildContext
  ): Promise<ImageInfo> {
    const { applicationId, projectId, directory, scratch, customBuildpacks, noCache } = request
    const { runtime, hosts } = this.parts
    const builder = request.builderImage ?? this.parts.builderImage
    const builderName = await resolveToolImage(builder, request, this.parts, context)
    const resolved: string[] = []
    for (const reference of customBuildpacks)
      resolved.push(
        isImage(reference)
          ? `docker://${await resolveToolImage(withoutScheme(reference), request, this.parts, context)}`
          : reference
      )
    await this.#admit(
      customBuildpacks.filter(reference => !isImage(reference)),
      applicationId,
      context
    )
    const buildpacks = await fetchBuildpacks(resolved, join(scratch, 'buildpacks'), hosts, context)
    const { build, launch } = cacheVolumes(applicationId)
    for (const volume of [build, launch]) await runtime.ensureVolume(volume, { projectId, applicationId })
    context.log({
      level: 'info',
      msg: `Building with ${shownParts(builder, customBuildpacks)}`
    })
    const ended = new AbortController()
    try {
      await runtime.capLabelled(
        madeByPack,
        { ...(request.limits ?? this.parts.usualLimits), processes: maxProcesses },
        {
          signal: AbortSignal.any([context.signal, ended.signal]),
          onRefusal: reason =>
            context.log({
              level: 'warning',
              msg: `The memory, CPU and processes of this build are not limited: ${reason}`
            })
        }
      )
      return await labelledImage(this.parts, { program, request }, context, async name => {
        await this.#tool.run(
          {
            args: [
              'build',
              name,
              '--no-color',
              '--path',
              directory,
              '--builder',
              builderName,
              '--pull-policy',
              'if-not-present',
              '--docker-host',
              'inherit',
              '--network',
              await runtime.ensureBuildNetwork(projectId),
              '--cache',
              `type=build;format=volume;name=${build};type=launch;format=volume;name=${launch}`,
              ...(noCache ? ['--clear-cache'] : []),
              ...buildpacks.flatMap(buildpack => ['--buildpack', buildpack]),
              ...passed.args
            ],
            env: passed.env,
            own: {},
            directory,
            scratch,
            explain: output => explainDenied(program, output)
          },
          context
        )
      })
    } catch (error) {
      // A program that was killed leaves the containers in which it was building.
      for (const volume of [build, launch]) await runtime.releaseVolume(volume).catch(() => undefined)
      throw error
    } finally {
      ended.abort()
    }
  }
}

const shownParts = (builder: string, buildpacks: readonly string[]): string =>
  `the builder ${builder}${buildpacks.length === 0 ? '' : ` and the buildpacks ${buildpacks.join(', ')}`}`

/** As the contract names them. */
function cacheVolumes(applicationId: string): { readonly build: string; readonly launch: string } {
  const short = applicationId.slice(0, 8)
  const { build, launch } = buildpacksVolumePrefixes
  return { build: build + short, launch: launch + short }
}

function volumeCache(runtime: ContainerRuntime): BuilderCache {
  return {
    async sizes(applicationId) {
      const { build, launch } = cacheVolumes(applicationId)
      const volumes = await runtime.volumes({ applicationId })
      const sizeOf = (wanted: string): number => volumes.find(({ name }) => name === wanted)?.sizeBytes ?? 0
      return { buildBytes: sizeOf(build), launchBytes: sizeOf(launch) }
    },
    async clear(applicationId) {
      const names = new Set(Object.values(cacheVolumes(applicationId)))
      // Only what carries this application's labels: another one's id may begin alike.
      const owned = (await runtime.volumes({ applicationId }))
        .map(({ name }) => name)
        .filter(name => names.has(name))
      for (const name of owned) {
        await runtime.releaseVolume(name)
        await runtime.removeVolume(name)
      }
    }
  }
}
