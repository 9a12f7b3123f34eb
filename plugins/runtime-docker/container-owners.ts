import type { Owner } from 'busbar/api/containers'
import type { Log } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import type { Identity, InspectedContainer } from './identity.js'

/** Some megabytes; of what is forgotten the engine is asked again. */
const mostKnown = 20_000

/** Whose the containers of the engine are. That never changes, so each is verified once; events name them long after. */
export class ContainerOwners {
  /** By the container's id; null for one that is not ours. */
  readonly #known = new Map<string, Owner | null>()

  constructor(
    private readonly engine: EngineClient,
    private readonly identity: Identity,
    private readonly log: Log
  ) {}

  /** Undefined for a container that another platform, a build or a person has made, whatever its labels say, and for none. */
  async of(containerId: string): Promise<Owner | undefined> {
    const known = this.#known.get(containerId)
    if (known !== undefined) return known ?? undefined
    const seen = await this.engine.call(
      'inspect a container',
      async docker => await docker.getContainer(containerId).inspect(),
      { absent: [404] }
    )
    return seen === undefined ? undefined : this.ofInspected(seen)
  }

  /** Undefined for one that was not asked for yet; null for one that is not ours. */
  known(containerId: string): Owner | null | undefined {
    return this.#known.get(containerId)
  }

  ofInspected(
    seen: InspectedContainer & Pick<Docker.ContainerInspectInfo, 'Id' | 'Name'>
  ): Owner | undefined {
    const known = this.#known.get(seen.Id)
    if (known !== undefined) return known ?? undefined
    const owner = this.identity.container(seen)
    if (owner === undefined && this.identity.claimsContainer(seen.Config.Labels)) {
      this.log.warn(
        { container: seen.Name.slice(1), containerId: seen.Id },
        'a container has the labels of this platform and is not its own: it is left alone. If it was one, the key that signed it is missing: restore keys.json, or put the earlier key into ENCRYPTION_KEYS; else its author has copied the labels'
      )
    }
    this.#know(seen.Id, owner ?? null)
    return owner
  }

  #know(containerId: string, owner: Owner | null): void {
    this.#known.set(containerId, owner)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= mostKnown) break
      this.#known.delete(oldest)
    }
  }
}
