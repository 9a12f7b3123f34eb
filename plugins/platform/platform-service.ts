import type { Builder } from 'busbar/api/builds'
import type { Identity } from 'busbar/api/identity'
import type { Contributions } from 'busbar/sdk'

export interface Features {
  /** True when a builder that needs BuildKit is there. */
  readonly buildkit_available: boolean
  readonly instance_name: string
}

export interface PlatformService { features(): Promise<Features> }

const defaultName = 'Busbar'
/** The build types whose builders work through BuildKit. */
const buildkitBuilders = ['railpack']

export function createPlatformService ({ identity, builders }: { identity: Identity, builders: Contributions<Builder> }): PlatformService {
  return {
    features: async () => ({
      buildkit_available: buildkitBuilders.some(name => builders.get(name) !== undefined),
      instance_name: await identity.instanceName() ?? defaultName
    })
  }
}
