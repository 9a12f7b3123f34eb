import { allow, type RouteDeclarer } from 'busbar/sdk'
import { memberRoutes } from './member-routes.js'
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
    items: projectListItem,
    access: allow.token('read', { project: 'filtered' }),
    handler: async ({ reach, page }, { projects }) => await projects.list(reach, page)
  })
  route({
    method: 'POST',
    url: '/api/projects',
    group,
    operationId: 'CreateProject',
    summary: 'Create Project',
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
    access: allow.session({ project: ownersOnly }),
    schema: { body: sharingBody, response: { 200: project } },
    audit: { action: 'update_project_sharing', resource: 'project', id: projectRule },
    handler: async (request, { projects }) => await projects.share(request.project, request.body)
  })
  route({
    method: 'PUT',
    url: `${one}/transfer`,
    group,
    operationId: 'TransferProject',
    summary: 'Transfer Project',
    access: allow.session({ role: 'admin', project: projectRule }),
    schema: { body: transferBody, response: { 200: project } },
    audit: { action: 'transfer_project', resource: 'project', id: projectRule },
    handler: async (request, { projects }) => await projects.transfer(request.project, request.body)
  })
  memberRoutes(route)
}
