import { isUuid, type Resources, type Tx } from 'busbar/sdk'
import type { Postgres } from '../database/postgres.js'
import { projectKind } from '../declarations/resource-kinds.js'
import type { ResourceRemovals } from './resource-removals.js'
import { ResourceTable } from './resource-table.js'
import type { RunningKinds } from './running-kinds.js'

/** Who owns a resource: its project, and by kind the ids of what else it is in. */
export interface Ownership {
  readonly projectId: string
  readonly parents: Readonly<Record<string, string>>
}

/** Rows may refer to each other in a circle. */
const deepest = 8

/** Whose a resource is, by what its plugin declares; undefined for what does not exist, is being removed, or is in no project. */
export class ResourceOwners {
  constructor(
    private readonly postgres: Pick<Postgres, 'onTablesOf'>,
    private readonly kinds: RunningKinds
  ) {}

  async ownerOf(kind: string, id: string, tx?: Tx): Promise<Ownership | undefined> {
    return await this.#ownerOf({ kind, id }, deepest, tx)
  }

  async #ownerOf(
    { kind, id }: { readonly kind: string; readonly id: string },
    levels: number,
    tx?: Tx
  ): Promise<Ownership | undefined> {
    if (levels === 0) return undefined
    const running = this.kinds.get(kind)
    if (running === undefined || !isUuid(id)) return undefined
    const found = await new ResourceTable(this.postgres, running).parentsOf(id, { tx, visible: true })
    if (found === undefined) return undefined
    const { [projectKind]: project, ...parents } = found
    if (kind === projectKind) return { projectId: id, parents }
    if (project !== undefined) return { projectId: project, parents }
    for (const [parent, parentId] of Object.entries(parents)) {
      const above = await this.#ownerOf({ kind: parent, id: parentId }, levels - 1, tx)
      if (above !== undefined) return { ...above, parents: { ...above.parents, ...parents } }
    }
    return undefined
  }
}

/** What one plugin may do with resources. */
export const resourcesFor = (
  plugin: string,
  parts: {
    readonly postgres: Pick<Postgres, 'onTablesOf'>
    readonly kinds: RunningKinds
    readonly owners: ResourceOwners
    readonly removals: ResourceRemovals
  }
): Resources =>
  Object.freeze<Resources>({
    remove: async ({ kind, id, project }, tx) => {
      if (!isUuid(id)) return false
      if (project !== undefined && (await parts.owners.ownerOf(kind, id, tx))?.projectId !== project)
        return false
      return await parts.removals.begin(plugin, { kind, id }, tx)
    },
    namesOf: async (kind, ids) => {
      const running = parts.kinds.get(kind)
      return running === undefined ? [] : await new ResourceTable(parts.postgres, running).namesOf(ids)
    }
  })
