import { join } from 'node:path'
import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import type { Problem } from 'busbar/sdk'
import type { BuildContext, Builder, BuilderCache, BuildRequest } from '../api.js'
import type { HostRules } from '../network/host-resolution.js'
import { problems } from '../problems.js'
import { findByName } from '../registry/local-image.js'
import type { RegistryGate } from '../registry/registry-gate.js'
import { checkBuildpacks, imageOfBuildpack } from './buildpack-reference.js'
import { CommandLineTool, type ToolParts } from './command-line-tool.js'
import { type LabellingParts, labelledImage } from './labelled-image.js'
import { fetchBuildpacks } from './remote-buildpacks.js'
import { checkToolImages } from './tool-images.js'
import { passVariables, warnOfWithheld } from './tool-variables.js'

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

interface BuildpacksParts extends ToolParts, LabellingParts {
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

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    const { applicationId, projectId, directory, scratch, customBuildpacks, noCache } = request
    await this.#tool.require()
    const { runtime, gate, hosts } = this.parts
    const builder = request.builderImage ?? this.parts.builderImage
    await checkBuildpacks(customBuildpacks, directory)
    // Images of this machine are used without asking a registry, and buildpacks could read whatever is in them.
    const images = [builder, ...customBuildpacks.map(imageOfBuildpack).filter(image => image !== null)]
    const check = async (): Promise<void> => await checkToolImages(images, applicationId, this.parts, context)
    await check()
    // What is not on the engine pack pulls itself.
    for (const name of images)
      if ((await findByName(runtime, name)) === undefined) await gate.admit(name, context.signal)
    const buildpacks = await fetchBuildpacks(customBuildpacks, join(scratch, 'buildpacks'), hosts, context)
    const passed = passVariables(request.variables, { withSecrets: true })
    warnOfWithheld(passed, program, context)
    const { build, launch } = cacheVolumes(applicationId)
    for (const volume of [build, launch]) await runtime.ensureVolume(volume, { projectId, applicationId })
    context.log({
      level: 'info',
      msg: `Building with the builder ${builder}${customBuildpacks.length === 0 ? '' : ` and the buildpacks ${customBuildpacks.join(', ')}`}`
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
              builder,
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
            explain: explainDenied
          },
          context
        )
        // One that came to the engine meanwhile, for somebody else, may be what was built with.
        await check()
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

/** The registry's answer to a pull of the builder, of its run image or of a buildpack. */
function explainDenied(output: string): Problem | undefined {
  const line = output
    .split('\n')
    .findLast(
      text =>
        /unauthorized|authentication required|access denied|no basic auth credentials|\bdenied: /i.test(
          text
        ) && /image|pull|registry|manifest|fetch/i.test(text)
    )
  return line === undefined ? undefined : problems.toolDenied({ program, reason: line.trim().slice(0, 500) })
}

/** As the contract names them. */
function cacheVolumes(applicationId: string): { readonly build: string; readonly launch: string } {
  const short = applicationId.slice(0, 8)
  return { build: `busbar-cnb-cache-${short}`, launch: `busbar-cnb-launch-${short}` }
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
