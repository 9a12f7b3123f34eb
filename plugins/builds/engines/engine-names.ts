import { createHash } from 'node:crypto'
import { builderVolumePrefix, type EngineProgram } from '../api.js'
import { entrypoint } from './engine-program.js'

/** What the container of a build engine runs is part of its name: one that another release has made is made anew, with its cache. */
export function containerName({
  projectId,
  program
}: {
  readonly projectId: string
  readonly program: EngineProgram
}): string {
  const text = JSON.stringify([entrypoint(program), program.daemon.env])
  const version = createHash('sha256').update(text).digest('hex').slice(0, 8)
  return `busbar.builder.${program.kind}.${projectId}.${version}`
}

/** Which of the programs runs in a container; undefined: one of a plugin that is off. */
export const programOf = (
  containerName: string,
  programs: readonly EngineProgram[]
): EngineProgram | undefined =>
  programs.find(({ kind }) => containerName.startsWith(`busbar.builder.${kind}.`))

export const volumeName = (projectId: string): string => builderVolumePrefix + projectId
