import type { OutputLine, Owner } from 'busbar/api/containers'
import type { Problem } from 'busbar/sdk'
import type { BuildLimits, EngineCommand, EngineProgram } from '../api.js'
import type { ContainerFiles } from './container-files.js'

/** What every build in a build engine has, whatever is built. */
export interface BuildFrame {
  readonly tag: string
  readonly owner: Required<Pick<Owner, 'projectId' | 'applicationId' | 'deploymentId'>>
  readonly noCache: boolean
  readonly limits: BuildLimits
}

/** Where it is built. */
export interface Place {
  readonly program: EngineProgram
  readonly files: ContainerFiles
  /** Of this build alone. */
  readonly directory: string
}

/** A build that has all that it needs in the engine, and is to be run. */
export interface ReadyBuild {
  /** Leaves the image in `out/` of the directory. */
  readonly command: EngineCommand
  /** Images of the engine of the platform that it may have been built upon. */
  readonly bases: ReadonlyArray<{ readonly id: string }>
  readonly onLine: (line: OutputLine) => void
  /** Why it failed. */
  readonly failure: (exitCode: number) => Problem
  /** Ends and removes what the daemon has of it when the command has ended, in whatever way. */
  readonly cleanUp?: EngineCommand
}
