import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageInfo } from 'busbar/api/images'
import type { BuildContext, Builder, BuildRequest } from '../api.js'
import { chooseFiles, packTree, unreadableNote } from '../context/build-context.js'
import type { DockerfileWork } from '../engines/dockerfile-work.js'
import type { ClassicWay } from '../engines/engine-choice.js'
import { CommandLineTool, type ToolParts } from './command-line-tool.js'
import { buildInEngineOrClassic, type EngineParts, shownLimits } from './engine-or-classic.js'
import { type LabellingParts, labelledImage } from './labelled-image.js'
import {
  nixpacksDockerfile,
  nixpacksVariables,
  readNixpacksOutput,
  withoutNixpacksOutput
} from './nixpacks-output.js'
import { type PassedVariables, passVariables, warnOfWithheld } from './tool-variables.js'

const program = 'nixpacks'

const nixpacks = {
  program,
  what: 'it finds out how an application is built and builds it with packages of Nix',
  install:
    'Install it with: curl -sSL https://nixpacks.com/install.sh | bash. It also needs the docker command, with buildx where build_engine is classic'
}

const classicWay: ClassicWay = {
  name: 'nixpacks, in the BuildKit of the Docker Engine that runs the applications',
  lack: 'where the limits of a build do not hold',
  isClassicBuilder: false
}

/** Builds without a Dockerfile, with the one that nixpacks writes. */
export class NixpacksBuilder implements Builder {
  readonly #tool: CommandLineTool

  constructor(private readonly parts: ToolParts & LabellingParts & EngineParts) {
    this.#tool = new CommandLineTool(parts, nixpacks)
  }

  async unavailable(): Promise<string | null> {
    return await this.#tool.unavailable()
  }

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    await this.#tool.require()
    // Each of them is written into the image, and handed to docker as an argument.
    const passed = passVariables(request.variables, { withSecrets: false })
    warnOfWithheld(passed, program, context)
    return await buildInEngineOrClassic(
      this.parts,
      request,
      {
        engine: async () => await this.#forEngine(request, passed, context),
        classic: async () => await this.#buildClassic(request, passed, context),
        classicWay
      },
      context
    )
  }

  async #buildClassic(
    request: BuildRequest,
    passed: PassedVariables,
    context: BuildContext
  ): Promise<ImageInfo> {
    const { directory, scratch } = request
    context.log({ level: 'info', msg: 'Building with nixpacks' })
    return await labelledImage(this.parts, { program, request }, context, async name => {
      await this.#tool.run(
        {
          args: ['build', directory, '--name', name, ...cacheOption(request), ...passed.args],
          env: passed.env,
          own: { DOCKER_BUILDKIT: '1' },
          directory,
          scratch
        },
        context
      )
    })
  }

  /** nixpacks only writes here what is to be built. */
  async #forEngine(
    request: BuildRequest,
    passed: PassedVariables,
    context: BuildContext
  ): Promise<DockerfileWork> {
    const { directory, scratch, tag, limits = this.parts.usualLimits } = request
    context.log({ level: 'info', msg: `Building ${tag} with nixpacks (${shownLimits(limits)})` })
    const out = join(scratch, 'nixpacks')
    await mkdir(out)
    const run = { env: passed.env, own: {}, directory, scratch }
    await this.#tool.run(
      { ...run, args: ['build', directory, '--out', out, ...cacheOption(request), ...passed.args] },
      context
    )
    const { text, files } = await readNixpacksOutput(out)
    // Of the variables that it adds the Dockerfile has the names alone.
    const answer = await this.#tool.ask(
      { ...run, args: ['plan', directory, '--format', 'json', ...passed.args] },
      context
    )
    const chosen = await chooseFiles(directory, nixpacksDockerfile, context.signal)
    if (chosen.unreadable.length > 0)
      context.log({ level: 'warning', msg: unreadableNote(chosen.unreadable) })
    const included = withoutNixpacksOutput(chosen.included)
    return {
      name: nixpacksDockerfile,
      text,
      context: () => packTree(directory, included, files),
      buildArgs: nixpacksVariables(answer),
      secrets: {}
    }
  }
}

const cacheOption = ({ noCache, applicationId }: BuildRequest): readonly string[] =>
  noCache ? ['--no-cache'] : ['--cache-key', applicationId]
