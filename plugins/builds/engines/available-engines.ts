import { isProblem } from 'busbar/sdk'
import type { BuildContext, BuildRequest } from '../api.js'
import { problems } from '../problems.js'
import { type ResolverParts, resolveImage } from '../registry/image-resolver.js'
import { buildkitProgram } from './buildkit-program.js'
import { dockerdProgram } from './dockerd-program.js'
import {
  type ClassicWay,
  chooseEngine,
  classicBuilder,
  type EngineChoice,
  type OfferedEngine,
  type WantedEngine
} from './engine-choice.js'
import type { EngineProgram } from './engine-program.js'

interface EngineSettings {
  readonly build_engine: WantedEngine
  readonly buildkit_image: string
  readonly dockerd_image: string
}

/** A registry that had no image just now is not asked for it by each build. */
const askAgainMs = 10 * 60_000

/** Which build engines there are on this machine. */
export class AvailableEngines {
  readonly #missing = new Map<string, { readonly reason: string; readonly at: number }>()

  constructor(
    private readonly parts: ResolverParts,
    private readonly settings: EngineSettings
  ) {}

  /** Rejects with 409 E_BUILD_ENGINE_MISSING where the kind that is asked for is not there. */
  async choose(
    request: Pick<BuildRequest, 'applicationId' | 'deploymentId'>,
    context: BuildContext,
    classic: ClassicWay = classicBuilder
  ): Promise<Exclude<EngineChoice, { kind: 'none' }>> {
    const { build_engine: wanted, buildkit_image, dockerd_image } = this.settings
    const programs: ReadonlyArray<readonly [EngineProgram, string]> = [
      [buildkitProgram, buildkit_image],
      [dockerdProgram, dockerd_image]
    ]
    const offered: OfferedEngine[] = []
    const ids = new Map<string, string>()
    for (const [program, image] of programs) {
      if (wanted !== 'auto' && wanted !== program.kind) continue
      const found = await this.#find(image, request, context)
      offered.push({ program, image, fault: 'reason' in found ? found.reason : null })
      if ('reason' in found) continue
      ids.set(image, found.id)
      break
    }
    const choice = chooseEngine(wanted, offered, classic)
    if (choice.kind === 'none') throw problems.engineMissing({ reason: choice.reason })
    context.log({ level: 'info', msg: choice.note })
    if (choice.kind === 'project') await context.onEngine?.(choice.program.kind)
    else if (classic.isClassicBuilder) await context.onEngine?.('classic')
    return choice.kind === 'project' ? { ...choice, image: ids.get(choice.image) ?? choice.image } : choice
  }

  async #find(
    reference: string,
    { applicationId, deploymentId }: Pick<BuildRequest, 'applicationId' | 'deploymentId'>,
    context: BuildContext
  ): Promise<{ readonly id: string } | { readonly reason: string }> {
    const missing = this.#missing.get(reference)
    // A look at the engine costs little, and an operator may have loaded it by now.
    const isOnlyLooked = missing !== undefined && performance.now() - missing.at < askAgainMs
    try {
      if (isOnlyLooked && (await this.parts.imageService.image(reference)) === undefined) return missing
      const { image } = await resolveImage(this.parts, { reference, applicationId, deploymentId }, context)
      this.#missing.delete(reference)
      return { id: image.id }
    } catch (error) {
      context.signal.throwIfAborted()
      if (!isProblem(error)) throw error
      const found = { reason: error.message, at: performance.now() }
      this.#missing.set(reference, found)
      return found
    }
  }
}
