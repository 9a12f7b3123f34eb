import type { Log } from 'busbar/sdk'
import type { DeploymentStore } from '../records/deployment-store.js'

/** Whose projects are, as far as it is known: the database may have no room, too, when that is asked for. */
export class ProjectOwners {
  #known: ReadonlyMap<string, string> = new Map()

  constructor(
    private readonly store: Pick<DeploymentStore, 'ownersOfProjects'>,
    private readonly log: Log
  ) {}

  async renew(projectIds: ReadonlyArray<string | undefined>): Promise<void> {
    const ids = [...new Set(projectIds.flatMap(id => id ?? []))]
    if (ids.length === 0) return
    try {
      // Of others stays what was known: containers and images are asked for one after the other.
      this.#known = new Map([...this.#known, ...(await this.store.ownersOfProjects(ids))])
    } catch (error) {
      this.log.debug({ err: error }, 'whose projects are could not be read; going by what was known')
    }
  }

  /** One whose owner is not known stands for itself. */
  of(projectId: string | undefined): string {
    return this.#known.get(projectId ?? '') ?? projectId ?? ''
  }
}
