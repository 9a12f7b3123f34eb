import type { Owner } from 'busbar/api/containers'
import type { Resources } from 'busbar/sdk'

/** What a thing on the engine belongs to, as the closest of those that have a name. */
interface OwnerRef {
  readonly type: 'application' | 'database' | 'project'
  readonly id: string
}

export const ownerRef = ({ databaseId, applicationId, projectId }: Owner): OwnerRef =>
  databaseId !== undefined
    ? { type: 'database', id: databaseId }
    : applicationId !== undefined
      ? { type: 'application', id: applicationId }
      : { type: 'project', id: projectId ?? '' }

/** The names of owners, by one question for each kind; of what is gone there is none. */
export async function ownerNames(
  resources: Pick<Resources, 'namesOf'>,
  owners: readonly Owner[]
): Promise<(owner: Owner) => string> {
  const wanted = new Map<OwnerRef['type'], Set<string>>()
  for (const owner of owners) {
    const { type, id } = ownerRef(owner)
    wanted.set(type, (wanted.get(type) ?? new Set()).add(id))
  }
  const names = new Map<string, string>()
  await Promise.all(
    [...wanted].map(async ([type, ids]) => {
      for (const { id, name } of await resources.namesOf(type, [...ids])) names.set(`${type} ${id}`, name)
    })
  )
  return owner => {
    const { type, id } = ownerRef(owner)
    return names.get(`${type} ${id}`) ?? ''
  }
}
