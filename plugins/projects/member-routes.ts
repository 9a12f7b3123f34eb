import { allow, pageOf, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import { problems } from './problems.js'
import type { Projects } from './projects.js'
import { member, memberBody, memberParams } from './schemas.js'

const group = 'Projects'
const all = '/api/projects/:projectId/members'

export function memberRoutes(route: RouteDeclarer<Projects>) {
  route.list({
    url: all,
    group,
    operationId: 'ListProjectMembers',
    summary: 'Get Project Members',
    description:
      'Who has a role of their own in the project: the owner first, then by e-mail address. Whom it is shared with, as every user, is not listed.',
    access: allow.token('read', { project: { param: 'projectId' } }),
    items: member,
    handler: async ({ project, page }, { members }) => pageOf(page, await members.list(project))
  })
  route({
    // Who owns a project must learn whether an address has an account; who tries addresses must not get far.
    method: 'PUT',
    url: all,
    group,
    operationId: 'SetProjectMember',
    summary: 'Set Project Member',
    description: 'Adds a member, or changes the role of one. A project has at most 200.',
    problems: [problems.noSuchAddress, problems.ownsIt, problems.notFound, problems.tooMany],
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
    description:
      'Removes a member, or has the caller leave the project. Nothing happens when they are no member. What they have open of the project ends at once.',
    problems: [problems.ownsIt, problems.notFound],
    access: allow.session({ project: { param: 'projectId', owner: true, self: 'userId' } }),
    schema: { params: memberParams, response: { 200: statusResponse } },
    audit: { action: 'remove_project_member', resource: 'user', id: { param: 'userId' } },
    handler: async ({ project, params }, { members }) => await members.remove(project, params.userId)
  })
}
