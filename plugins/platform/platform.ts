import { builders } from 'busbar/api/builds'
import { identity } from 'busbar/api/identity'
import type { StartContext } from 'busbar/sdk'
import { PlatformService } from './platform-service.js'

export const needs = { identity, builders }

/** The running plugin. */
export interface Platform {
  readonly platform: PlatformService
}

export function startPlatform({ use }: StartContext<typeof needs, unknown>): Platform {
  return { platform: new PlatformService(use.identity, use.builders) }
}
