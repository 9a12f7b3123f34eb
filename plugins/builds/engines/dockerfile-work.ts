import type { Readable } from 'node:stream'
import { settleAll } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import { tooManyInstructions } from '../dockerfile/parse-dockerfile.js'
import type { ResolverParts } from '../registry/image-resolver.js'
import { baseNames, stageNames } from './base-names.js'
import { isFrontEndSetting, withoutSyntax } from './dockerfile-syntax.js'
import { supplyBases } from './engine-bases.js'
import { engineBuildProblem } from './engine-failure.js'
import { buildEngineProblems } from './engine-problems.js'
import { hasTooManyInstructions } from './instruction-bound.js'
import type { BuildFrame, Place, ReadyBuild } from './ready-build.js'
import { StepLog } from './step-log.js'

/** A Dockerfile, or what a front-end reads in its place, for a build engine. */
export interface DockerfileWork {
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
}

/** Puts into the engine what the build is made of. */
export async function readyDockerfile(
  parts: ResolverParts,
  { program, files, directory }: Place,
  build: BuildFrame & DockerfileWork,
  context: BuildContext
): Promise<ReadyBuild> {
  const { owner, name, text, frontEnd, secrets, sshKey, target, platform, noCache, limits } = build
  if (frontEnd === undefined && hasTooManyInstructions(text))
    throw buildEngineProblems.dockerfile({ dockerfile: name, reason: tooManyInstructions })
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
  const steps = new StepLog(context.log, context.onStep)
  return {
    bases,
    command: program.build({
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
    }),
    onLine: ({ text }) => steps.read(text),
    failure: exitCode =>
      engineBuildProblem(steps.ending, {
        dockerfile: name,
        memoryBytes: limits.memoryBytes,
        exitCode,
        refusals,
        stages: () => stageNames(text),
        ...(target !== undefined && { target }),
        ...(frontEnd !== undefined && { frontEnd })
      })
  }
}
