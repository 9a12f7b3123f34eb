import { type Access, projectRoleFor } from '../../sdk/access.js'
import { wordsOf } from './resource-kinds.js'

/** What descriptions say of who may do something. */

export function securityOf(access: Access): Array<Readonly<Record<string, readonly string[]>>> {
  switch (access.kind) {
    case 'public':
      return []
    case 'session':
      return [{ session: [] }]
    case 'token':
      return [{ token: [access.scope] }, { session: [] }]
  }
}

/** What the structure of a description cannot say: role, scope, pins. `refusal` is how one is recognised. */
export function accessText(access: Access, refusal = ' (403)'): string {
  if (access.kind === 'public') return `Public: ${access.reason}.`
  const who =
    access.kind === 'session'
      ? `A session is required; a personal access token is refused${refusal} whatever its scope.`
      : `A token with the scope \`${access.scope}\` or a wider one, or a session.`
  const role = access.role === undefined ? '' : ' The admin role is required.'
  return `${who}${role}${access.kind === 'token' ? pinText(access.project, refusal) : ''}${memberText(access, refusal)}`
}

function pinText(rule: Exclude<Access, { kind: 'public' }>['project'], refusal: string): string {
  if (rule === 'none') return ''
  if (rule === 'never-pinned') return ` A token pinned to projects is refused${refusal}.`
  if (rule === 'filtered')
    return ` A token pinned to projects sees those only; an explicit project outside its pins is refused${refusal}.`
  return ` A token pinned to other projects is refused${refusal}.`
}

function memberText(access: Exclude<Access, { kind: 'public' }>, refusal: string): string {
  const { project, role } = access
  if (typeof project === 'string' || role === 'admin') return ''
  switch (projectRoleFor(access)) {
    case 'viewer':
      return ''
    case 'editor':
      return ` Viewers of the project are refused${refusal}.`
    case 'owner':
      return 'self' in project && project.self !== undefined
        ? ` Only the owner of the project, admins, and the user \`${project.self}\` may do this.`
        : ' Only the owner of the project and admins may do this.'
  }
}

/** What the access rule knows of an id in the path, and in the name of a channel. */
export function idText(param: string, access: Access, isInPath = true): string | undefined {
  const rule = access.kind === 'public' ? 'none' : access.project
  if (typeof rule === 'string') return undefined
  const kind = 'of' in rule ? (rule.param === param ? rule.of : undefined) : rule.chain?.[param]
  if (kind !== undefined) {
    const elsewhere = ' One that is not in what stands before it in the path is not found (404).'
    const words = typeof kind === 'string' ? wordsOf(kind) : kind.map(wordsOf).join(' or ')
    return `The \`id\` of the ${words}.${isInPath ? elsewhere : ''}`
  }
  return 'of' in rule || rule.param !== param ? undefined : 'The `id` of the project.'
}
