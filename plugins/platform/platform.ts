import { identity } from 'busbar/api/identity'
import { projectDirectory } from 'busbar/api/projects'
import {
  type Contributor,
  configChecks,
  kernel,
  type ServiceBinder,
  type StartContext,
  updateState
} from 'busbar/sdk'
import {
  buildkitBuilders,
  deploymentCounters,
  failedBackups,
  hostFigures,
  platformParts,
  platformUpdates,
  serviceCounters
} from './api.js'
import { collectWarnings } from './config-warnings.js'
import { PartService } from './part-service.js'
import { PlatformService } from './platform-service.js'
import { StatsService } from './stats-service.js'
import { UpdateNotice } from './update-notice.js'

export const needs = {
  bus: kernel.bus,
  clock: kernel.clock,
  secrets: kernel.secrets,
  statistics: kernel.statistics,
  identity,
  projects: projectDirectory,
  buildkit: buildkitBuilders,
  services: serviceCounters,
  deployments: deploymentCounters,
  backups: failedBackups,
  host: hostFigures,
  contributed: platformParts,
  checks: configChecks
}

/** The running plugin. */
export interface Platform {
  readonly platform: PlatformService
  readonly figures: StatsService
  readonly updates: UpdateNotice
  readonly parts: PartService
}

export function startPlatform({ use, log, onStop }: StartContext<typeof needs, unknown>): Platform {
  const { checks, secrets } = use
  const updates = new UpdateNotice({ ...use, log })
  onStop(() => updates.close())
  const clean = (text: string): string => secrets.clean(text)
  return {
    platform: new PlatformService(use.identity, use.buildkit),
    figures: new StatsService({
      ...use,
      warnings: async () => await collectWarnings({ checks, clean, log }),
      log
    }),
    parts: new PartService({ ...use, clean, log }),
    updates
  }
}

export function platformServices(provide: ServiceBinder, { updates }: Platform): void {
  provide(platformUpdates, {
    begin: async () => await updates.begin(),
    abandon: async () => await updates.abandon()
  })
}

export function platformContributions(contribute: Contributor, { updates }: Platform): void {
  contribute(updateState, 'platform', { isUpdating: () => updates.isUpdating() })
}
