import type { TokenUse } from 'busbar/api/identity'
import { type OwnProjectRole, ownProjectRoles, type ProjectSummary } from 'busbar/api/projects'
import { type Operation, projectRoleFor } from 'busbar/sdk'
import type { concerns } from './schemas.js'

interface Reached {
  readonly projects: ReadonlyArray<
    Pick<ProjectSummary, 'id' | 'name' | 'slug'> & { readonly my_role: OwnProjectRole }
  >
  readonly operations: readonly Operation[]
  readonly uses: readonly TokenUse[]
}

/** Joins what a token may do with when it did. An operation of a project is out of reach where no project allows it. */
export function reachOfToken({ projects, operations, uses }: Reached) {
  const latest = (isMeant: (use: TokenUse) => boolean): Date | null =>
    uses.reduce<Date | null>(
      (found, use) =>
        isMeant(use) && (found === null || use.last_used_at > found) ? use.last_used_at : found,
      null
    )
  const widest = Math.max(-1, ...projects.map(({ my_role: role }) => rankOf(role)))
  return {
    projects: projects.map(({ id, name, slug, my_role: role }) => ({
      id,
      name,
      slug,
      role,
      last_used_at: latest(use => use.project_id === id)
    })),
    operations: operations
      .filter(({ access }) => concernOf(access) !== 'project' || widest >= rankOf(projectRoleFor(access)))
      .map(({ method, url, summary, group, access }) => {
        const path = url.replace(/:(\w+)/g, '{$1}')
        return {
          method,
          path,
          summary,
          group,
          concerns: concernOf(access),
          last_used_at: latest(use => use.operation === `${method} ${path}`)
        }
      })
      .sort((a, b) => compare(a.path, b.path) || compare(a.method, b.method))
  }
}

/** An admin may do what an owner may, and more. */
const rankOf = (role: OwnProjectRole): number => ownProjectRoles.indexOf(role)

function concernOf(access: Operation['access']): (typeof concerns)[number] {
  if (access.kind === 'public' || access.project === 'none' || access.project === 'never-pinned')
    return 'platform'
  return access.project === 'filtered' ? 'projects' : 'project'
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
