import type { ImageInfo } from 'busbar/api/images'
import type { Problem } from 'busbar/sdk'
import type { BuildContext, Builder, BuildRequest } from '../api.js'
import { problems } from '../problems.js'
import { CommandLineTool, type ToolParts } from './command-line-tool.js'
import { type LabellingParts, labelledImage } from './labelled-image.js'
import { passVariables, warnOfWithheld } from './tool-variables.js'

const program = 'railpack'

const railpack = {
  program,
  what: 'it finds out how an application is built and builds it with BuildKit',
  install:
    'Install it with: curl -sSL https://railpack.com/install.sh | sh -s -- --bin-dir /usr/local/bin. It also needs the docker command and a BuildKit daemon at BUILDKIT_HOST'
}

interface RailpackParts extends ToolParts, LabellingParts {
  /** The address of a BuildKit daemon: `tcp://localhost:1234`. */
  readonly buildKitHost: string
}

/** Builds without a Dockerfile, by `railpack build`. */
export class RailpackBuilder implements Builder {
  readonly #tool: CommandLineTool

  constructor(private readonly parts: RailpackParts) {
    this.#tool = new CommandLineTool(parts, railpack)
  }

  async unavailable(): Promise<string | null> {
    return await this.#tool.unavailable()
  }

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    const { applicationId, directory, scratch, noCache } = request
    await this.#tool.require()
    const { buildKitHost: address } = this.parts
    const passed = passVariables(request.variables, { withSecrets: true })
    warnOfWithheld(passed, program, context)
    // A key that was never used before is an empty cache.
    const cacheKey = noCache ? `${applicationId}-${request.deploymentId}` : applicationId
    context.log({ level: 'info', msg: `Building with railpack and BuildKit at ${address}` })
    return await labelledImage(this.parts, { program, request }, context, async name => {
      await this.#tool.run(
        {
          args: [
            'build',
            '--name',
            name,
            '--progress',
            'plain',
            '--cache-key',
            cacheKey,
            ...passed.args,
            directory
          ],
          env: { ...passed.env },
          own: { BUILDKIT_HOST: address },
          directory,
          scratch,
          explain: output => explain(output, address)
        },
        context
      )
    })
  }
}

function explain(output: string, address: string): Problem | undefined {
  const isAway =
    /failed to get buildkit information|failed to connect to buildkit|BUILDKIT_HOST environment variable|failed to list workers|error reading server preface/i.test(
      output
    )
  return isAway ? problems.buildKitAway({ address }) : undefined
}
