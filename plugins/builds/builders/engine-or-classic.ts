import type { ImageInfo } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type { BuildContext, BuildLimits, BuildRequest, EngineProgram } from '../api.js'
import type { AvailableEngines } from '../engines/available-engines.js'
import type { ClassicWay, OnlyKind } from '../engines/engine-choice.js'
import { buildIsolated, type EngineWork, type IsolatedParts } from '../engines/isolated-build.js'

/** What a builder needs to build in the build engine of a project. */
export interface EngineParts extends IsolatedParts {
  readonly availableEngines: Pick<AvailableEngines, 'choose' | 'noteNotStarted'>
  readonly usualLimits: BuildLimits
}

interface Ways {
  /** Makes ready what the build engine is to build; the rest is as the application asks for it. */
  readonly engine: () => Promise<EngineWork>
  /** Builds without a build engine. */
  readonly classic: () => Promise<ImageInfo>
  /** Absent: by the classic builder of the engine. */
  readonly classicWay?: ClassicWay
  /** Absent: every kind of build engine can build it. */
  readonly only?: OnlyKind
}

/** Builds in the build engine of the project, or as it is done where there is none. */
export async function buildInEngineOrClassic(
  parts: EngineParts,
  request: BuildRequest,
  ways: Ways,
  context: BuildContext
): Promise<ImageInfo> {
  const { engine, classic, classicWay, only } = ways
  const choice = await parts.availableEngines.choose(request, context, {
    ...(classicWay !== undefined && { classic: classicWay }),
    ...(only !== undefined && { only })
  })
  if (choice.kind === 'classic') return await classic()
  const { applicationId, deploymentId, projectId, tag, noCache, limits = parts.usualLimits } = request
  const owner = { projectId, applicationId, deploymentId }
  const build = { tag, owner, limits, noCache, ...(await engine()) }
  let isStarted = false
  const onStarted = async (program: EngineProgram): Promise<void> => {
    isStarted = true
    if (program.kind === choice.program.kind) return
    const msg = `Built by the ${program.name} of this project, in which something else is being built`
    context.log({ level: 'info', msg })
    context.onEngine?.(program.kind)
  }
  try {
    const chosen = { ...choice, isOnlyKind: only !== undefined, onStarted }
    return await buildIsolated(parts, chosen, build, context)
  } catch (error) {
    context.signal.throwIfAborted()
    // A machine may not let a container do what a build engine has to. Nothing has been built yet.
    if (isStarted || !choice.isReplaceable || !isProblem(error) || error.code === 'E_ENGINE_UNREACHABLE')
      throw error
    parts.availableEngines.noteNotStarted(choice.program, projectId, error.message)
    return await buildInEngineOrClassic(parts, request, ways, context)
  }
}

/** For the log. */
export const shownLimits = ({ memoryBytes, cpus }: BuildLimits): string =>
  `${Math.round(memoryBytes / 2 ** 20)} MiB of memory, ${cpus} CPUs`
