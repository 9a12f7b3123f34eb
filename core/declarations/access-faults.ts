import { type Access, scopes } from '../../sdk/access.js'
import { isParamOf } from './resource-kinds.js'

/**
 * What is wrong with an access value, whatever its type claims: plugins may be JavaScript. `kinds` are those of
 * resources that are declared.
 */
export function accessFaults(
  access: Access | undefined,
  params: readonly string[],
  kinds: readonly string[]
): string[] {
  if (typeof access !== 'object' || access === null)
    return ['access is missing; use allow.public, allow.session or allow.token']
  if (access.kind === 'public') {
    return typeof access.reason === 'string' && access.reason.length > 0
      ? []
      : ['allow.public needs the reason why']
  }
  if (access.kind !== 'session' && access.kind !== 'token')
    return [`access kind "${String((access as { kind: unknown }).kind)}" is unknown`]
  const faults: string[] = []
  if (access.kind === 'token' && !scopes.includes(access.scope))
    faults.push(`scope "${String(access.scope)}" is none of ${scopes.join(', ')}`)
  if (access.role !== undefined && access.role !== 'admin')
    faults.push(`role "${String(access.role)}" is not admin`)
  const { project } = access
  if (project === undefined) faults.push('the access names no project rule')
  else if (typeof project === 'string') {
    if (!['filtered', 'never-pinned', 'none'].includes(project))
      faults.push(`project rule "${String(project)}" is unknown`)
  } else {
    const used = [
      project.param,
      ...('chain' in project ? Object.keys(project.chain ?? {}) : []),
      ...('self' in project ? [project.self ?? ''] : [])
    ]
    for (const param of used)
      if (!params.includes(param)) faults.push(`the project rule names "${param}", which is not in the path`)
    if ('of' in project) {
      const of: readonly unknown[] = [project.of].flat()
      if (of.length === 0 || of.some(kind => typeof kind !== 'string'))
        faults.push('the project rule names no kind of resource in "of"')
      return faults
    }
    for (const param of params) {
      const kind = used.includes(param) ? undefined : kinds.find(one => isParamOf(one, param))
      if (kind !== undefined)
        faults.push(`the project rule's chain leaves out "${param}"; add ${param}: '${kind}' to it`)
    }
  }
  return faults
}
