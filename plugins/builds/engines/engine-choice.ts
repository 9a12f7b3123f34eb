import type { EngineProgram } from '../api.js'

/** What an operator asks for: the best that there is, one kind, without which nothing is built, or the engine of the platform. */
export type WantedEngine = 'auto' | 'classic' | EngineProgram['kind']

/** A kind of build engine, and why it cannot be used now; null: it can. */
export interface OfferedEngine {
  readonly program: EngineProgram
  readonly image: string
  readonly fault: EngineFault | null
}

/** `image`: its image is not there; `start`: it did not start for this project. */
export interface EngineFault {
  readonly of: 'image' | 'start'
  readonly reason: string
}

/** How a builder builds where there is no build engine, as the log says it. */
export interface ClassicWay {
  readonly name: string
  /** What it does not do: a part of a sentence that begins with "which" or "where". */
  readonly lack: string
  /** Whether it is the engine of the platform that carries out the commands. */
  readonly isClassicBuilder: boolean
}

/** The one kind of build engine in which something can be built, and why, as the log says it. */
export interface OnlyKind {
  readonly kind: EngineProgram['kind']
  readonly why: string
}

export const classicBuilder: ClassicWay = {
  name: 'the classic builder of the Docker Engine',
  lack: 'which knows no BuildKit syntax',
  isClassicBuilder: true
}

export type EngineChoice =
  | {
      readonly kind: 'project'
      readonly program: EngineProgram
      readonly image: string
      readonly note: string
      /** Where it does not start, the next kind is taken. */
      readonly isReplaceable: boolean
    }
  | { readonly kind: 'classic'; readonly note: string }
  | { readonly kind: 'none'; readonly reason: string }

/**
 * Which engine a build gets: `offered` in the order of preference. The note goes into the log of the build; it says which it
 * is and how to get a better one.
 */
export function chooseEngine(
  wanted: WantedEngine,
  offered: readonly OfferedEngine[],
  classic: ClassicWay = classicBuilder,
  only?: OnlyKind
): EngineChoice {
  if (wanted === 'classic') return { kind: 'classic', note: `Built by ${classic.name}, as build_engine says` }
  const reasons = only === undefined || wanted === only.kind ? [] : [only.why]
  const candidates = offered.filter(({ program }) => wanted === 'auto' || program.kind === wanted)
  const found = candidates.find(({ fault }) => fault === null)
  if (found !== undefined) {
    const better = candidates.slice(0, candidates.indexOf(found)).map(faultOf)
    return {
      kind: 'project',
      program: found.program,
      image: found.image,
      isReplaceable: wanted === 'auto',
      note: [
        `Built by a ${found.program.name} that this project alone uses (${found.image})`,
        ...better,
        ...reasons
      ].join('; ')
    }
  }
  const faults = candidates.map(faultOf).join('; ')
  return wanted === 'auto'
    ? {
        kind: 'classic',
        note: `Built by ${classic.name}, ${classic.lack}: ${[faults, ...reasons].join('; ')}`
      }
    : { kind: 'none', reason: faults }
}

const faultOf = ({ program, image, fault }: OfferedEngine): string =>
  fault?.of === 'start'
    ? `${program.name} (${image}) is not used for some minutes: ${fault.reason}`
    : `${program.name} needs the image ${image} on this machine (docker pull ${image}): ${fault?.reason}`
