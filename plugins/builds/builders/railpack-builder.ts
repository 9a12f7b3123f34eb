import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageInfo } from 'busbar/api/images'
import type { Problem, Secrets } from 'busbar/sdk'
import type { BuildContext, Builder, BuildRequest } from '../api.js'
import { packTree, selectEntries, unreadableNote } from '../context/build-context.js'
import type { DockerfileWork } from '../engines/dockerfile-work.js'
import type { ClassicWay } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import { CommandLineTool, type ToolParts } from './command-line-tool.js'
import { buildInEngineOrClassic, type EngineParts, shownLimits } from './engine-or-classic.js'
import { type LabellingParts, labelledImage } from './labelled-image.js'
import { railpackPlanFile, readRailpackPlan, secretsText, valuesOfSecrets } from './railpack-plan.js'
import { type PassedVariables, passVariables, warnOfWithheld } from './tool-variables.js'

const program = 'railpack'

const railpack = {
  program,
  what: 'it finds out how an application is built and builds it with BuildKit',
  install:
    'Install it with: curl -sSL https://railpack.com/install.sh | sh -s -- --bin-dir /usr/local/bin. Where build_engine is classic it also needs the docker command and a BuildKit daemon at BUILDKIT_HOST'
}

interface RailpackParts extends ToolParts, LabellingParts, EngineParts {
  /** The address of a BuildKit daemon: `tcp://localhost:1234`. */
  readonly buildKitHost: string
  /** The image of the front-end that reads its plans in build engines. */
  readonly frontEnd: string
  readonly secrets: Pick<Secrets, 'sign'>
}

/** Builds without a Dockerfile, with the plan that railpack makes. */
export class RailpackBuilder implements Builder {
  readonly #tool: CommandLineTool

  constructor(private readonly parts: RailpackParts) {
    this.#tool = new CommandLineTool(parts, railpack)
  }

  async unavailable(): Promise<string | null> {
    return await this.#tool.unavailable()
  }

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    await this.#tool.require()
    const passed = passVariables(request.variables, { withSecrets: true })
    warnOfWithheld(passed, program, context)
    return await buildInEngineOrClassic(
      this.parts,
      request,
      {
        engine: async () => await this.#forEngine(request, passed, context),
        classic: async () => await this.#buildClassic(request, passed, context),
        classicWay: this.#classicWay
      },
      context
    )
  }

  get #classicWay(): ClassicWay {
    return {
      name: `railpack, in the BuildKit at ${this.parts.buildKitHost}`,
      lack: 'where the limits of a build do not hold',
      isClassicBuilder: false
    }
  }

  async #buildClassic(
    request: BuildRequest,
    passed: PassedVariables,
    context: BuildContext
  ): Promise<ImageInfo> {
    const { directory, scratch } = request
    const { buildKitHost: address } = this.parts
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
            cacheKey(request),
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

  /** railpack only plans here; its front-end builds in the engine. */
  async #forEngine(
    request: BuildRequest,
    passed: PassedVariables,
    context: BuildContext
  ): Promise<DockerfileWork> {
    const { applicationId, directory, scratch, tag, noCache, variables } = request
    const { limits = this.parts.usualLimits } = request
    context.log({ level: 'info', msg: `Building ${tag} with railpack (${shownLimits(limits)})` })
    const out = join(scratch, 'railpack')
    await mkdir(out)
    await this.#tool.run(
      {
        args: ['prepare', '--plan-out', join(out, railpackPlanFile), ...passed.args, directory],
        env: passed.env,
        own: {},
        directory,
        scratch
      },
      context
    )
    const plan = await readRailpackPlan(out)
    const secrets = valuesOfSecrets(plan, variables)
    // What an ignore file leaves out is part of the plan.
    const { included, unreadable } = await selectEntries(directory, [], context.signal)
    if (unreadable.length > 0) context.log({ level: 'warning', msg: unreadableNote(unreadable) })
    return {
      name: railpackPlanFile,
      text: plan.text,
      frontEnd: this.parts.frontEnd,
      context: () => packTree(directory, included, {}),
      buildArgs: {
        'cache-key': cacheKey(request),
        'secrets-hash': this.#codeOf(secretsText(applicationId, secrets)),
        ...(noCache && { 'no-cache': 'true' })
      },
      secrets
    }
  }

  /**
   * The values of secrets are no part of what a step is known by in the cache, so each gets this beside them. It tells who reads it
   * nothing without the key of this installation, not even by trying values.
   */
  #codeOf(text: string): string {
    return createHash('sha256').update(this.parts.secrets.sign(text)).digest('hex')
  }
}

/** A key that was never used before is an empty cache. */
const cacheKey = ({ applicationId, deploymentId, noCache }: BuildRequest): string =>
  noCache ? `${applicationId}-${deploymentId}` : applicationId

function explain(output: string, address: string): Problem | undefined {
  const isAway =
    /failed to get buildkit information|failed to connect to buildkit|BUILDKIT_HOST environment variable|failed to list workers|error reading server preface/i.test(
      output
    )
  return isAway ? problems.buildKitAway({ address }) : undefined
}
