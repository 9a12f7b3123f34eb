import type { ImageInfo } from 'busbar/api/images'
import type { BuildContext, Builder, BuildRequest } from '../api.js'
import { CommandLineTool, type ToolParts } from './command-line-tool.js'
import { type LabellingParts, labelledImage } from './labelled-image.js'
import { passVariables, warnOfWithheld } from './tool-variables.js'

const program = 'nixpacks'

const nixpacks = {
  program,
  what: 'it finds out how an application is built and builds it with packages of Nix',
  install:
    'Install it with: curl -sSL https://nixpacks.com/install.sh | bash. It also needs the docker command with buildx'
}

/** Builds without a Dockerfile, by `nixpacks build`. */
export class NixpacksBuilder implements Builder {
  readonly #tool: CommandLineTool

  constructor(private readonly parts: ToolParts & LabellingParts) {
    this.#tool = new CommandLineTool(parts, nixpacks)
  }

  async unavailable(): Promise<string | null> {
    return await this.#tool.unavailable()
  }

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    const { applicationId, directory, scratch, noCache } = request
    await this.#tool.require()
    // It writes each of them into the image, and hands them to docker as arguments.
    const passed = passVariables(request.variables, { withSecrets: false })
    warnOfWithheld(passed, program, context)
    context.log({ level: 'info', msg: 'Building with nixpacks' })
    return await labelledImage(this.parts, { program, request }, context, async name => {
      await this.#tool.run(
        {
          args: [
            'build',
            directory,
            '--name',
            name,
            ...(noCache ? ['--no-cache'] : ['--cache-key', applicationId]),
            ...passed.args
          ],
          env: passed.env,
          own: { DOCKER_BUILDKIT: '1' },
          directory,
          scratch
        },
        context
      )
    })
  }
}
