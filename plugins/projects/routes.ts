import { allow, type RouteDeclarer } from 'busbar/sdk'
import { memberRoutes } from './member-routes.js'
import { problems } from './problems.js'
import type { Projects } from './projects.js'
import {
  createBody,
  deletedAnswer,
  project,
  projectListItem,
  sharingBody,
  transferBody,
  updateBody
} from './schemas.js'

const group = 'Projects'
const one = '/api/projects/:projectId'
const projectRule = { param: 'projectId' } as const
const ownersOnly = { param: 'projectId', owner: true } as const

export function routes(route: RouteDeclarer<Projects>) {
  route.list({
    url: '/api/projects',
    group,
    operationId: 'ListProjects',
    summary: 'Get Projects',
    description:
      'The projects that the caller sees: own ones, those that are shared or of which they are a member, and all for admins. The newest first.',
    items: projectListItem,
    access: allow.token('read', { project: 'filtered' }),
    version: async ({ reach }, { projects }) => await projects.listVersion(reach),
    handler: async ({ reach, page }, { projects }) => await projects.list(reach, page)
  })
  route({
    method: 'POST',
    url: '/api/projects',
    group,
    operationId: 'CreateProject',
    summary: 'Create Project',
    description: 'The caller owns it. Nothing is deployed yet: create applications in it.',
    problems: [problems.slugTaken, problems.ownerGone],
    idempotent: true,
    access: allow.token('write', { project: 'never-pinned' }),
    schema: { body: createBody, response: { 201: project } },
    audit: { action: 'create_project', resource: 'project', id: { result: 'id' } },
    handler: async ({ caller, body }, { projects }) => await projects.create(caller.user.id, body)
  })
  route({
    method: 'GET',
    url: one,
    group,
    operationId: 'GetProject',
    summary: 'Get Project',
    problems: [problems.notFound],
    access: allow.token('read', { project: projectRule }),
    schema: { response: { 200: project } },
    handler: async (request, { projects }) => await projects.get(request.project, request.reach)
  })
  route({
    method: 'PUT',
    url: one,
    group,
    operationId: 'UpdateProject',
    summary: 'Update Project',
    description: 'Only the name can be changed; what the body leaves out stays.',
    problems: [problems.notFound],
    access: allow.token('write', { project: projectRule }),
    schema: { body: updateBody, response: { 200: project } },
    audit: { action: 'update_project', resource: 'project', id: projectRule },
    handler: async (request, { projects }) =>
      await projects.rename(request.project, request.body, request.reach)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DeleteProject',
    summary: 'Delete Project',
    description:
      'The project is out of reach at once, with all that lies in it. Containers, images and data are removed afterwards, and until that is done its slug cannot be used again. It cannot be undone.',
    problems: [problems.notFound],
    access: allow.session({ project: ownersOnly }),
    schema: { response: { 200: deletedAnswer } },
    audit: { action: 'delete_project', resource: 'project', id: projectRule },
    handler: async (request, { projects }) => await projects.delete(request.project)
  })
  route({
    method: 'PUT',
    url: `${one}/sharing`,
    group,
    operationId: 'UpdateProjectSharing',
    summary: 'Update Project Sharing',
    description:
      'Lets every user of the platform work in the project, or its members alone again. Who loses the project loses at once what they have open of it.',
    problems: [problems.notFound],
    access: allow.session({ project: ownersOnly }),
    schema: { body: sharingBody, response: { 200: project } },
    audit: { action: 'update_project_sharing', resource: 'project', id: projectRule },
    handler: async (request, { projects }) =>
      await projects.share(request.project, request.body, request.reach)
  })
  route({
    method: 'PUT',
    url: `${one}/transfer`,
    group,
    operationId: 'TransferProject',
    summary: 'Transfer Project',
    description:
      'Gives the project to another user. Who owned it keeps nothing of it, unless it is shared or they are made a member again.',
    problems: [problems.noSuchUser, problems.notFound],
    access: allow.session({ role: 'admin', project: projectRule }),
    schema: { body: transferBody, response: { 200: project } },
    audit: { action: 'transfer_project', resource: 'project', id: projectRule },
    handler: async (request, { projects }) =>
      await projects.transfer(request.project, request.body, request.reach)
  })
  memberRoutes(route)
}
