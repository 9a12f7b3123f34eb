import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type { BuildContext, EngineProgram } from '../api.js'
import type { ResolverParts } from '../registry/image-resolver.js'
import { type BuildpacksWork, readyBuildpacks } from './buildpacks-work.js'
import { BadResult, ContainerFiles } from './container-files.js'
import { type DockerfileWork, readyDockerfile } from './dockerfile-work.js'
import { isDiskFull, isTooManyLayers } from './engine-failure.js'
import { buildEngineProblems } from './engine-problems.js'
import { workPath } from './engine-program.js'
import { aside, runInEngine } from './engine-run.js'
import type { EngineUsage } from './engine-usage.js'
import { handOver } from './hand-over.js'
import { readMadeImage } from './made-image.js'
import type { ProjectEngines, StartedEngine } from './project-engines.js'
import type { BuildFrame, Place } from './ready-build.js'

/** What a builder has a build engine build. */
export type EngineWork = DockerfileWork | BuildpacksWork
type IsolatedBuild = BuildFrame & EngineWork

export interface IsolatedParts extends ResolverParts {
  readonly runtime: ContainerRuntime
  readonly engines: Pick<ProjectEngines, 'use'>
  readonly engineUsage: Pick<EngineUsage, 'during'>
}

/** Builds in the build engine of the project, and brings the image to the engine of the platform. */
export async function buildIsolated(
  parts: IsolatedParts,
  engine: {
    readonly program: EngineProgram
    readonly image: string
    /** No other kind of engine can build it. */
    readonly isOnlyKind: boolean
    /** Called when it takes the build, with what it is; what fails before has not begun. */
    readonly onStarted?: (program: EngineProgram) => Promise<void>
  },
  build: IsolatedBuild,
  context: BuildContext
): Promise<ImageInfo> {
  const { projectId } = build.owner
  const { program: wanted, image, isOnlyKind, onStarted } = engine
  const onWait = (current: EngineProgram): void =>
    context.log({
      level: 'info',
      msg: `Waiting until what is being built in the ${current.name} of this project has ended, which a ${wanted.name} replaces`
    })
  return await parts.engines.use(
    { program: wanted, image, projectId, ...(isOnlyKind && { onWait }) },
    { deploymentId: build.owner.deploymentId, limits: build.limits },
    context.signal,
    async ({ containerId, program, noteLeftovers, noteUnheard }) => {
      await onStarted?.(program)
      const files = new ContainerFiles(parts.runtime, containerId, context.signal)
      const directory = `${workPath}/${build.owner.deploymentId}`
      try {
        return await parts.engineUsage.during(
          { owner: build.owner, containerId },
          async () =>
            await buildIn(parts, { program, files, directory, noteLeftovers, noteUnheard }, build, context)
        )
      } catch (error) {
        context.signal.throwIfAborted()
        throw await explained(parts, containerId, build, error)
      } finally {
        if (!(await removeWork(parts, containerId, directory))) noteLeftovers()
      }
    }
  )
}

async function buildIn(
  parts: IsolatedParts,
  place: Place & Pick<StartedEngine, 'noteLeftovers' | 'noteUnheard'>,
  build: IsolatedBuild,
  context: BuildContext
): Promise<ImageInfo> {
  const { program, files, directory, noteLeftovers, noteUnheard } = place
  const { command, bases, onLine, failure, cleanUp } =
    'builder' in build
      ? await readyBuildpacks(parts, place, build, context)
      : await readyDockerfile(parts, place, build, context)
  const { containerId } = files
  try {
    // What can clean up after a build ends what the daemon has of it.
    const code = await runInEngine(
      parts,
      { containerId, directory, command, onLine, ...(cleanUp === undefined && { onKilled: noteUnheard }) },
      context.signal
    )
    if (code !== 0) throw failure(code)
  } finally {
    if (cleanUp !== undefined && !(await aside(parts, containerId, cleanUp))) noteLeftovers()
  }
  const made = await readMadeImage(files, `${directory}/out`, program.makes)
  const { tag, owner } = build
  return await handOver(parts, { made, tag, owner, bases: bases.map(({ id }) => id) }, context)
}

async function explained(
  parts: IsolatedParts,
  containerId: string,
  build: IsolatedBuild,
  error: unknown
): Promise<unknown> {
  const isBad = error instanceof BadResult
  if (!isBad && !isProblem(error)) return error
  try {
    const state = await lastState(parts, containerId)
    // Whatever was under way in it ended with it.
    if (state?.status !== 'running') return buildEngineProblems.cut({ why: whyEnded(state) })
  } catch {
    // The engine of the platform is away, as the error says.
    if (!isBad) return error
  }
  if (!isBad) return error
  const reason = error.message.slice(0, 400)
  if (isTooManyLayers(reason))
    return buildEngineProblems.layers({ dockerfile: 'name' in build ? build.name : 'the builder' })
  return isDiskFull(reason)
    ? buildEngineProblems.diskFull({ reason })
    : buildEngineProblems.result({ reason })
}

/** A container that is killed may be told as running for a while, when the programs in it have ended already. */
async function lastState(parts: IsolatedParts, containerId: string): Promise<ContainerState | undefined> {
  for (let look = 1; ; look++) {
    const state = await parts.runtime.inspect(containerId)
    if (state?.status !== 'running' || look === endLooks) return state
    if (await aside(parts, containerId, { argv: ['true'] })) return state
    await parts.clock.sleep(endLookMs)
  }
}

const endLooks = 20
const endLookMs = 100

function whyEnded(state: ContainerState | undefined): string {
  if (state === undefined) return 'was not meant (its container is gone)'
  return state.oomKilled
    ? 'took more memory than it may (memory_mib of the builds plugin)'
    : `was not meant (exit code ${state.exitCode})`
}

/** Whatever a build leaves otherwise goes before the next one; whether nothing is left. */
async function removeWork(parts: IsolatedParts, containerId: string, directory: string): Promise<boolean> {
  return await aside(parts, containerId, { argv: ['rm', '-rf', directory] })
}
