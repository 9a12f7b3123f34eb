import { DrillRunner } from './drill-runner.js'
import { DumpRunner } from './dump-runner.js'
import type { GivenUpVolumes } from './given-up-volumes.js'
import { RestoreRunner } from './restore-runner.js'
import { RunKit, type RunParts } from './run-kit.js'

interface RunnersParts extends RunParts {
  readonly givenUp: GivenUpVolumes
  readonly keepDays: number
}

export interface BackupRunners {
  readonly dumps: DumpRunner
  readonly restores: RestoreRunner
  readonly drills: DrillRunner
}

export function backupRunners({ givenUp, keepDays, ...parts }: RunnersParts): BackupRunners {
  const kit = new RunKit(parts)
  return {
    dumps: new DumpRunner(kit),
    restores: new RestoreRunner({ kit, givenUp, keepDays }),
    drills: new DrillRunner(kit)
  }
}
