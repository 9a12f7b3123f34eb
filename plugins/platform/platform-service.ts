import type { Identity } from 'busbar/api/identity'
import type { Contributions } from 'busbar/sdk'
import type { Features } from './schemas.js'

const defaultName = 'Busbar'

/** What everybody may know of the instance, before they sign in. */
export class PlatformService {
  constructor(
    private readonly identity: Identity,
    private readonly buildkit: Contributions<{ areThere(): boolean }, 'builds'>
  ) {}

  async features(): Promise<Features> {
    return {
      buildkit_available: this.buildkit.get('builds')?.areThere() === true,
      instance_name: (await this.identity.instanceName()) ?? defaultName
    }
  }
}
