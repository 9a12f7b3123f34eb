import { createHash } from 'node:crypto'
import { buildkitProgram } from './buildkit-program.js'
import { dockerdProgram } from './dockerd-program.js'
import { type EngineProgram, entrypoint } from './engine-program.js'

/** Of which a container may be one. */
const programs: readonly EngineProgram[] = [buildkitProgram, dockerdProgram]

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

export const programOf = (containerName: string): EngineProgram | undefined =>
  programs.find(({ kind }) => containerName.startsWith(`busbar.builder.${kind}.`))

export const volumePrefix = 'busbar-builder-'
export const volumeName = (projectId: string): string => volumePrefix + projectId
