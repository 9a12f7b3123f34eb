import { allow, list, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Projects } from './projects.js'
import { member, memberBody } from './schemas.js'

const group = 'Projects'
const all = '/api/projects/:projectId/members'

export function memberRoutes(route: RouteDeclarer<Projects>) {
  route({
    method: 'GET',
    url: all,
    group,
    operationId: 'ListProjectMembers',
    summary: 'Get Project Members',
    access: allow.token('read', { project: { param: 'projectId' } }),
    schema: { response: { 200: list(member) } },
    handler: async ({ project }, { members }) => await members.list(project)
  })
  route({
    // Who owns a project must learn whether an address has an account; who tries addresses must not get far.
    method: 'PUT',
    url: all,
    group,
    operationId: 'SetProjectMember',
    summary: 'Set Project Member',
    limit: { max: 30, windowSeconds: 3600 },
    access: allow.session({ project: { param: 'projectId', owner: true } }),
    schema: { body: memberBody, response: { 200: member } },
    audit: { action: 'set_project_member', resource: 'user', id: { result: 'user_id' } },
    handler: async ({ project, body }, { members }) => await members.put(project, body)
  })
  route({
    method: 'DELETE',
    url: `${all}/:userId`,
    group,
    operationId: 'RemoveProjectMember',
    summary: 'Remove Project Member',
    access: allow.session({ project: { param: 'projectId', owner: true, self: 'userId' } }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'remove_project_member', resource: 'user', id: { param: 'userId' } },
    handler: async ({ project, params }, { members }) => await members.remove(project, params.userId)
  })
}
