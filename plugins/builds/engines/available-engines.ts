import { isProblem, withTimeLimit } from 'busbar/sdk'
import type { BuildContext, BuildEngineKind, BuildRequest, EngineProgram } from '../api.js'
import { type ResolverParts, resolveHeldImage, resolveImage } from '../registry/image-resolver.js'
import {
  type ClassicWay,
  chooseEngine,
  classicBuilder,
  type EngineChoice,
  type EngineFault,
  type OfferedEngine,
  type OnlyKind,
  type WantedEngine
} from './engine-choice.js'
import type { EngineKinds } from './engine-kinds.js'
import { buildEngineProblems } from './engine-problems.js'

interface EngineSettings {
  /** Undefined: as `usual_build_engine`. */
  readonly build_engine?: WantedEngine | undefined
  readonly usual_build_engine: WantedEngine
}

type Request = Pick<BuildRequest, 'projectId' | 'applicationId' | 'deploymentId'>

/** A registry that had no image just now is not asked for it by each build. */
const askAgainMs = 10 * 60_000
/** Where builds go on without, they wait for it no more often than this. */
const askAgainForBetterMs = 60 * 60_000
/** And so long at most: for what the registry says of the image, and for all of it. */
const answerMs = 15_000
const fetchMs = 5 * 60_000
/** What did not start for a project is not tried by each of its builds. */
const startAgainMs = 10 * 60_000

interface Noted {
  readonly reason: string
  readonly at: number
}

/** Which build engines there are on this machine. */
export class AvailableEngines {
  readonly #missing = new Map<string, Noted>()
  /** By project and kind: what one project has made of its engine says nothing of others. */
  readonly #notStarted = new Map<string, Noted>()

  constructor(
    private readonly parts: ResolverParts,
    private readonly settings: EngineSettings,
    private readonly kinds: Pick<EngineKinds, 'all'>
  ) {}

  /** Rejects with 409 E_BUILD_ENGINE_MISSING where the kind that is asked for is not there. */
  async choose(
    request: Request,
    context: BuildContext,
    { classic = classicBuilder, only }: { readonly classic?: ClassicWay; readonly only?: OnlyKind } = {}
  ): Promise<Exclude<EngineChoice, { kind: 'none' }>> {
    const { usual_build_engine, build_engine: asked = usual_build_engine } = this.settings
    // A kind that cannot build it was not asked for this.
    const wanted = only === undefined || asked === 'classic' || asked === only.kind ? asked : 'auto'
    const kinds = this.kinds.all()
    if (wanted !== 'auto' && wanted !== 'classic' && !kinds.some(({ program }) => program.kind === wanted))
      throw buildEngineProblems.missing({ reason: unknownKind(wanted, kinds) })
    const offered: OfferedEngine[] = []
    const ids = new Map<string, string>()
    for (const kind of kinds) {
      const { program, image } = kind
      if (wanted !== 'auto' && wanted !== program.kind) continue
      if (only !== undefined && only.kind !== program.kind) continue
      const found = await (wanted === 'auto'
        ? this.#findUsable(kind, request, context)
        : this.#find(image, request, context))
      offered.push({ program, image, fault: 'reason' in found ? found : null })
      if ('reason' in found) continue
      ids.set(image, found.id)
      break
    }
    const choice = chooseEngine(wanted, offered, classic, only)
    if (choice.kind === 'none') throw buildEngineProblems.missing({ reason: choice.reason })
    context.log({ level: 'info', msg: choice.note })
    if (choice.kind === 'project') context.onEngine?.(choice.program.kind)
    else if (classic.isClassicBuilder) context.onEngine?.('classic')
    return choice.kind === 'project' ? { ...choice, image: ids.get(choice.image) ?? choice.image } : choice
  }

  /** For some minutes, the project gets another one where it may. */
  noteNotStarted({ kind }: EngineProgram, projectId: string, reason: string): void {
    const now = this.#now()
    for (const [key, { at }] of this.#notStarted) if (now - at >= startAgainMs) this.#notStarted.delete(key)
    this.#notStarted.set(`${kind} ${projectId}`, { reason, at: now })
  }

  /** One of several: it is fetched, or taken where it is there. */
  async #findUsable(
    { program, image: reference, isFetched }: BuildEngineKind,
    request: Request,
    context: BuildContext
  ): Promise<Found> {
    const notStarted = this.#notStarted.get(`${program.kind} ${request.projectId}`)
    if (notStarted !== undefined && this.#now() - notStarted.at < startAgainMs)
      return { of: 'start', reason: notStarted.reason }
    const held = await this.#asFault(
      context,
      async () => await resolveHeldImage(this.parts, { ...request, reference })
    )
    if (held !== undefined) return 'reason' in held ? held : { id: held.image.id }
    if (!isFetched) return { of: 'image', reason: 'it is not there' }
    return await this.#find(reference, request, context, { isOneOfSeveral: true })
  }

  async #find(
    reference: string,
    request: Request,
    context: BuildContext,
    { isOneOfSeveral = false } = {}
  ): Promise<Found> {
    const missing = this.#missing.get(reference)
    // A look at the engine costs little, and an operator may have loaded it by now.
    const isOnlyLooked =
      missing !== undefined && this.#now() - missing.at < (isOneOfSeveral ? askAgainForBetterMs : askAgainMs)
    const found = await this.#asFault(context, async () => {
      if (isOnlyLooked && (await this.parts.imageService.image(reference)) === undefined) return undefined
      const wanted = { ...request, reference }
      if (!isOneOfSeveral) return await resolveImage(this.parts, wanted, context)
      context.log({ level: 'info', msg: `Fetching ${reference} for build engines, which is done once` })
      return await this.#fetchSoon(reference, context, async signal =>
        resolveImage(this.parts, wanted, { ...context, signal })
      )
    })
    if (found === undefined) return { of: 'image', reason: missing?.reason ?? 'it is not there' }
    if ('reason' in found) {
      this.#missing.set(reference, { reason: found.reason, at: this.#now() })
      return found
    }
    this.#missing.delete(reference)
    return { id: found.image.id }
  }

  /** A registry that is silent is not waited for as long as where nothing can be built without it. */
  async #fetchSoon<T>(
    name: string,
    { signal }: BuildContext,
    fetch: (signal: AbortSignal) => Promise<T>
  ): Promise<T> {
    const { clock, registries } = this.parts
    const slow = (ms: number) => () =>
      buildEngineProblems.imageSlow({ image: name, seconds: Math.round(ms / 1000) })
    await withTimeLimit(
      { clock, signal, ms: answerMs, reason: slow(answerMs) },
      async limit => await registries.offer({ name, isBase: true }, limit)
    )
    return await withTimeLimit({ clock, signal, ms: fetchMs, reason: slow(fetchMs) }, fetch)
  }

  async #asFault<T>({ signal }: BuildContext, run: () => Promise<T>): Promise<T | EngineFault> {
    try {
      return await run()
    } catch (error) {
      signal.throwIfAborted()
      if (!isProblem(error)) throw error
      return { of: 'image', reason: error.message }
    }
  }

  #now(): number {
    return this.parts.clock.elapsed()
  }
}

const unknownKind = (wanted: string, kinds: readonly BuildEngineKind[]): string =>
  `build_engine is ${wanted}, and no plugin that runs has such build engines: there are auto, classic, ${kinds.map(({ program }) => program.kind).join(', ')}`

type Found = { readonly id: string } | EngineFault
