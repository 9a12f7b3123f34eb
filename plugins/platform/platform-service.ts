import type { Builder } from 'busbar/api/builds'
import type { Identity } from 'busbar/api/identity'
import type { Contributions } from 'busbar/sdk'
import type { Features } from './schemas.js'

const defaultName = 'Busbar'
/** The build types whose builders work through BuildKit. */
const buildkitBuilders = ['railpack']

/** What everybody may know of the instance, before they sign in. */
export class PlatformService {
  constructor(
    private readonly identity: Identity,
    private readonly builders: Contributions<Builder>
  ) {}

  async features(): Promise<Features> {
    return {
      buildkit_available: buildkitBuilders.some(name => this.builders.get(name) !== undefined),
      instance_name: (await this.identity.instanceName()) ?? defaultName
    }
  }
}
