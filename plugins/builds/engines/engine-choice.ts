import type { EngineProgram } from './engine-program.js'

/** What an operator asks for: the best that there is, or one kind, without which nothing is built. */
export type WantedEngine = 'auto' | 'buildkit' | 'dockerd' | 'classic'

/** A kind of build engine, and why it cannot be used now; null: it can. */
export interface OfferedEngine {
  readonly program: EngineProgram
  readonly image: string
  readonly fault: string | null
}

export type EngineChoice =
  | {
      readonly kind: 'project'
      readonly program: EngineProgram
      readonly image: string
      readonly note: string
    }
  | { readonly kind: 'classic'; readonly note: string }
  | { readonly kind: 'none'; readonly reason: string }

/**
 * Which engine a build gets: `offered` in the order of preference. The note goes into the log of the build; it says which it
 * is and how to get a better one.
 */
export function chooseEngine(wanted: WantedEngine, offered: readonly OfferedEngine[]): EngineChoice {
  if (wanted === 'classic')
    return {
      kind: 'classic',
      note: 'Built by the classic builder of the Docker Engine, as build_engine says'
    }
  const candidates = offered.filter(({ program }) => wanted === 'auto' || program.kind === wanted)
  const found = candidates.find(({ fault }) => fault === null)
  if (found !== undefined) {
    const better = candidates.slice(0, candidates.indexOf(found)).map(faultOf)
    return {
      kind: 'project',
      program: found.program,
      image: found.image,
      note: [
        `Built by a ${found.program.name} that this project alone uses (${found.image})`,
        ...better
      ].join('; ')
    }
  }
  const faults = candidates.map(faultOf).join('; ')
  return wanted === 'auto'
    ? {
        kind: 'classic',
        note: `Built by the classic builder of the Docker Engine, which knows no BuildKit syntax: ${faults}`
      }
    : { kind: 'none', reason: faults }
}

const faultOf = ({ program, image, fault }: OfferedEngine): string =>
  `${program.name} needs the image ${image} on this machine (docker pull ${image}): ${fault}`
