import type { ImageInfo } from 'busbar/api/images'
import type { BuildContext, BuildLimits, BuildRequest } from '../api.js'
import type { AvailableEngines } from '../engines/available-engines.js'
import type { ClassicWay } from '../engines/engine-choice.js'
import { buildIsolated, type IsolatedBuild, type IsolatedParts } from '../engines/isolated-build.js'

/** What a builder needs to build in the build engine of a project. */
export interface EngineParts extends IsolatedParts {
  readonly availableEngines: Pick<AvailableEngines, 'choose'>
  readonly usualLimits: BuildLimits
}

/** What a builder knows of a build; the rest is as the application asks for it. */
export type EngineBuild = Omit<IsolatedBuild, 'tag' | 'owner' | 'limits' | 'noCache'>

interface Ways {
  /** Makes ready what the build engine is to build. */
  readonly engine: () => Promise<EngineBuild>
  /** Builds without a build engine. */
  readonly classic: () => Promise<ImageInfo>
  /** Absent: by the classic builder of the engine. */
  readonly classicWay?: ClassicWay
}

/** Builds in the build engine of the project, or as it is done where there is none. */
export async function buildInEngineOrClassic(
  parts: EngineParts,
  request: BuildRequest,
  { engine, classic, classicWay }: Ways,
  context: BuildContext
): Promise<ImageInfo> {
  const choice = await parts.availableEngines.choose(request, context, classicWay)
  if (choice.kind === 'classic') return await classic()
  const { applicationId, deploymentId, projectId, tag, noCache, limits = parts.usualLimits } = request
  const owner = { projectId, applicationId, deploymentId }
  return await buildIsolated(parts, choice, { tag, owner, limits, noCache, ...(await engine()) }, context)
}

/** For the log. */
export const shownLimits = ({ memoryBytes, cpus }: BuildLimits): string =>
  `${Math.round(memoryBytes / 2 ** 20)} MiB of memory, ${cpus} CPUs`
