import { problems } from '../problems.js'
import type { Dockerfile } from './instruction.js'

/** The same without what comes after a stage, which so becomes the image. Throws 409 E_BUILD_TARGET, which names the stages. */
export function upToStage(
  dockerfile: Dockerfile,
  { target, name }: { readonly target: string; readonly name: string }
): Dockerfile {
  const { stages } = dockerfile
  const named = stages.findIndex(({ from }) => from.name === target.toLowerCase())
  const at = named >= 0 ? named : numberIn(target, stages.length)
  if (at === undefined)
    throw problems.targetMissing({
      dockerfile: name,
      target,
      stages: shownStages(stages.map(({ from }) => from.name))
    })
  return { ...dockerfile, stages: stages.slice(0, at + 1) }
}

const numberIn = (target: string, stages: number): number | undefined =>
  /^(?:0|[1-9]\d{0,3})$/.test(target) && Number(target) < stages ? Number(target) : undefined

/** For the words of an error: by their names, those without one by their numbers. */
export const shownStages = (names: ReadonlyArray<string | undefined>): string =>
  names
    .map((stage, at) => stage ?? String(at))
    .slice(0, 50)
    .join(', ') || 'none'
