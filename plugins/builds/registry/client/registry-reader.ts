import type { RegistryAuth } from 'busbar/api/runtime-docker'
import type { Clock, Log } from 'busbar/sdk'
import type { HostRules } from '../../network/host-resolution.js'
import type { PaceLimits } from './fetch-pace.js'

/** With what a repository is read, and for whom. */
export interface ReaderParts {
  readonly rules: HostRules
  readonly clock: Pick<Clock, 'every' | 'sleep'>
  /** Is told why a fetch failed where whoever deploys is not. */
  readonly log: Pick<Log, 'info'>
  readonly auth?: RegistryAuth
  /** For a build, which has no account; the words of a failure say so. */
  readonly isBase?: true
  /** `usualPace` unless given. */
  readonly pace?: PaceLimits
  /** Ends all that is read by it. */
  readonly signal: AbortSignal
}

/** Reads from the repository of one image, with one account, for one fetch. */
export class RegistryReader {
  constructor(
    readonly image: string,
    readonly parts: ReaderParts
  ) {}
}
