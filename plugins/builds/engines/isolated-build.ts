import type { Readable } from 'node:stream'
import type { ContainerRuntime, ContainerState, Owner } from 'busbar/api/containers'
import type { ImageInfo } from 'busbar/api/images'
import { isProblem, type Problem, pause, settleAll, withTimeLimit } from 'busbar/sdk'
import type { BuildContext, BuildLimits } from '../api.js'
import { problems } from '../problems.js'
import type { ResolverParts } from '../registry/image-resolver.js'
import { baseNames, stageNames } from './base-names.js'
import { BadResult, ContainerFiles } from './container-files.js'
import { isFrontEndSetting, withoutSyntax } from './dockerfile-syntax.js'
import { supplyBases } from './engine-bases.js'
import { engineBuildProblem, isDiskFull } from './engine-failure.js'
import { type Command, type EngineProgram, workPath } from './engine-program.js'
import type { EngineUsage } from './engine-usage.js'
import { handOver } from './hand-over.js'
import { readMadeImage } from './made-image.js'
import type { ProjectEngines } from './project-engines.js'
import { StepLog } from './step-log.js'

export interface IsolatedBuild {
  readonly tag: string
  readonly owner: Required<Pick<Owner, 'projectId' | 'applicationId' | 'deploymentId'>>
  /** What its author calls the Dockerfile, and its text; with a front-end: a file as it reads them. */
  readonly name: string
  readonly text: string
  /** As in `ProgramBuild`: the name of its image. */
  readonly frontEnd?: string
  /** A tar of what COPY sees. */
  readonly context: () => Readable
  readonly buildArgs: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  /** As in `ProgramBuild`. */
  readonly sshKey?: string
  readonly target?: string
  /** `linux/arm64`; absent: the machine's own. */
  readonly platform?: string
  readonly noCache: boolean
  readonly limits: BuildLimits
}

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
    /** Called when it takes the build; what fails before has not begun. */
    readonly onStarted?: () => void
  },
  build: IsolatedBuild,
  context: BuildContext
): Promise<ImageInfo> {
  const { projectId } = build.owner
  const { program: wanted, image, onStarted } = engine
  return await parts.engines.use(
    { program: wanted, image, projectId },
    { deploymentId: build.owner.deploymentId, limits: build.limits },
    context.signal,
    async ({ containerId, program, noteLeftovers }) => {
      onStarted?.()
      const files = new ContainerFiles(parts.runtime, containerId, context.signal)
      const directory = `${workPath}/${build.owner.deploymentId}`
      try {
        return await parts.engineUsage.during(
          { owner: build.owner, containerId },
          async () => await buildIn(parts, { program, files, directory }, build, context)
        )
      } catch (error) {
        context.signal.throwIfAborted()
        throw await explained(parts, containerId, error)
      } finally {
        if (!(await removeWork(parts, containerId, directory))) noteLeftovers()
      }
    }
  )
}

interface Place {
  readonly program: EngineProgram
  readonly files: ContainerFiles
  readonly directory: string
}

async function buildIn(
  parts: IsolatedParts,
  { program, files, directory }: Place,
  build: IsolatedBuild,
  context: BuildContext
): Promise<ImageInfo> {
  const { owner, name, text, frontEnd, secrets, sshKey, target, platform, noCache } = build
  const file = frontEnd === undefined ? 'Dockerfile' : name
  const buildArgs = Object.fromEntries(
    Object.entries(build.buildArgs).filter(([name]) => !isFrontEndSetting(name))
  )
  const names = frontEnd === undefined ? baseNames(text, buildArgs) : [frontEnd]
  await files.run(['mkdir', '-p', `${directory}/context`, `${directory}/dockerfile`])
  const [{ bases, refusals }] = await settleAll([
    supplyBases(
      parts,
      {
        files,
        program,
        workDirectory: directory,
        names,
        ...(platform !== undefined && { platform }),
        owner
      },
      context
    ),
    files.unpack(`${directory}/context`, build.context()),
    files.write(
      `${directory}/dockerfile`,
      frontEnd === undefined
        ? {
            [file]: withoutSyntax(text),
            // Beside the Dockerfile it wins over the author's own, of which one has been applied: perhaps not the one in the context.
            [`${file}.dockerignore`]: '# what is here, is part of the build\n'
          }
        : { [file]: text }
    )
  ])
  const command = program.build({
    directory,
    file,
    buildArgs,
    secrets,
    noCache,
    bases,
    missing: names.filter(one => !bases.some(base => base.name === one)),
    ...(frontEnd !== undefined && { frontEnd }),
    ...(sshKey !== undefined && { sshKey }),
    ...(target !== undefined && { target }),
    ...(platform !== undefined && { platform })
  })
  await run(parts, { files, directory, command, refusals }, build, context)
  const made = await readMadeImage(files, `${directory}/out`, program.makes)
  return await handOver(parts, { made, tag: build.tag, owner, bases: bases.map(({ id }) => id) }, context)
}

async function run(
  { runtime, clock }: IsolatedParts,
  {
    files,
    directory,
    command,
    refusals
  }: {
    readonly files: ContainerFiles
    readonly directory: string
    readonly command: Command
    readonly refusals: ReadonlyMap<string, Problem>
  },
  { name, text, frontEnd, limits, target }: IsolatedBuild,
  { log, signal, onStep }: BuildContext
): Promise<void> {
  const steps = new StepLog(log, onStep)
  const running = runtime.exec(files.containerId, ['sh', '-c', noted, directory, ...command.argv], {
    env: command.env,
    directory,
    // Told to end it, the platform waits until it has: the engine would go on after a client that is gone.
    signal: new AbortController().signal,
    onLine: ({ text }) => steps.read(text)
  })
  const ended = new AbortController()
  const onAbort = async (): Promise<void> => {
    for (const signalName of ['TERM', 'KILL'] as const) {
      await aside({ runtime, clock }, files.containerId, ['sh', '-c', ending, directory, signalName])
      await pause(clock, endsWithinMs, ended.signal)
      if (ended.signal.aborted) return
    }
    // Its steps may have taken every process, so that none can be started to end them.
    await runtime.stop(files.containerId, 0).catch(() => {})
  }
  let whenEnded: Promise<void> | undefined
  const abort = (): void => {
    whenEnded = onAbort()
  }
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    const code = await running
    signal.throwIfAborted()
    if (code !== 0)
      throw engineBuildProblem(steps.ending, {
        dockerfile: name,
        memoryBytes: limits.memoryBytes,
        exitCode: code,
        refusals,
        stages: () => stageNames(text),
        ...(target !== undefined && { target }),
        ...(frontEnd !== undefined && { frontEnd })
      })
  } finally {
    signal.removeEventListener('abort', abort)
    ended.abort()
    await whenEnded
  }
}

/** Notes which process it is, and becomes the program. */
const noted = 'echo $$ > "$0/process"; exec "$@"'
/** The process and those that it has started, which have its group. */
const ending = 'kill "-$1" "-$(cat "$0/process")"'
const endsWithinMs = 5000
const asideMs = 60_000

async function explained(parts: IsolatedParts, containerId: string, error: unknown): Promise<unknown> {
  const isBad = error instanceof BadResult
  if (!isBad && !isProblem(error)) return error
  try {
    const state = await lastState(parts, containerId)
    // Whatever was under way in it ended with it.
    if (state?.status !== 'running') return problems.engineCut({ why: whyEnded(state) })
  } catch {
    // The engine of the platform is away, as the error says.
    if (!isBad) return error
  }
  if (!isBad) return error
  const reason = error.message.slice(0, 400)
  return isDiskFull(reason) ? problems.engineDiskFull({ reason }) : problems.engineResult({ reason })
}

/** A container that is killed may be told as running for a while, when the programs in it have ended already. */
async function lastState(parts: IsolatedParts, containerId: string): Promise<ContainerState | undefined> {
  for (let look = 1; ; look++) {
    const state = await parts.runtime.inspect(containerId)
    if (state?.status !== 'running' || look === endLooks) return state
    if (await aside(parts, containerId, ['true'])) return state
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
  return await aside(parts, containerId, ['rm', '-rf', directory])
}

/** A command whose failure changes nothing; whether it did what it should. */
async function aside(
  { runtime, clock }: Pick<IsolatedParts, 'runtime' | 'clock'>,
  containerId: string,
  argv: readonly string[]
): Promise<boolean> {
  return await withTimeLimit({ clock, ms: asideMs }, async signal =>
    runtime.exec(containerId, argv, { signal, onLine: () => {} })
  ).then(
    code => code === 0,
    () => false
  )
}
