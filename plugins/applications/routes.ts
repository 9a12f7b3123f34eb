import { allow, type RouteDeclarer } from 'busbar/sdk'
import { actionRoutes } from './action-routes.js'
import { inApplication } from './api.js'
import type { Applications } from './applications.js'
import { configurationRoutes } from './configuration-routes.js'
import { problems, refusedByGate, sourceProblems } from './problems.js'
import { application, changeSourceBody, createBody, deletedAnswer, updateBody } from './schemas.js'

const group = 'Applications'
const all = '/api/projects/:projectId/applications'
const one = `${all}/:applicationId` as const
const inProject = { param: 'projectId' } as const
const ownersOnly = { ...inApplication, owner: true } as const
const id = { param: 'applicationId' } as const

export function routes(route: RouteDeclarer<Applications>) {
  route.list({
    url: all,
    group,
    operationId: 'ListApplications',
    summary: 'Get Applications',
    description: 'The applications of the project, the newest first, without previews.',
    items: application,
    access: allow.token('read', { project: inProject }),
    version: async ({ project }, { applications }) => await applications.listVersion(project),
    handler: async ({ project, page }, { applications }) => await applications.list(project, page)
  })
  route({
    method: 'POST',
    url: all,
    group,
    operationId: 'CreateApplication',
    summary: 'Create Application',
    description:
      'Nothing runs yet: deploy it. Its variables, limits and health check have operations of their own.',
    problems: [...sourceProblems, problems.projectGone],
    idempotent: true,
    access: allow.token('write', { project: inProject }),
    schema: { body: createBody, response: { 201: application } },
    audit: { action: 'create_application', resource: 'application', id: { result: 'id' } },
    handler: async ({ project, body, caller }, { applications }) =>
      await applications.create(project, body, caller.user.id)
  })
  route({
    method: 'GET',
    url: one,
    group,
    operationId: 'GetApplication',
    summary: 'Get Application',
    problems: [problems.notFound],
    access: allow.token('read', { project: inApplication }),
    schema: { response: { 200: application } },
    handler: async ({ project, params }, { applications }) =>
      await applications.get(project, params.applicationId)
  })
  route({
    method: 'PUT',
    url: one,
    group,
    operationId: 'UpdateApplication',
    summary: 'Update Application',
    description:
      'What the body leaves out stays; null, or empty, clears what may be empty. A running container stays as it is until the next deploy or reload, as `pending_change` says.',
    problems: [...sourceProblems, problems.tokenNeeded, problems.credentialsNeeded, problems.notFound],
    access: allow.token('write', { project: inApplication }),
    schema: { body: updateBody, response: { 200: application } },
    audit: { action: 'update_application', resource: 'application', id },
    handler: async ({ project, params, body, caller }, { applications }) =>
      await applications.update(project, params.applicationId, body, caller.user.id)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DeleteApplication',
    summary: 'Delete Application',
    description:
      'The application is out of reach at once; its containers, images, volumes and records are removed afterwards, and so are the backups of its volumes, also of those that were deleted before. It cannot be undone.',
    problems: [problems.notFound],
    access: allow.session({ project: ownersOnly }),
    schema: { response: { 200: deletedAnswer } },
    audit: { action: 'delete_application', resource: 'application', id },
    handler: async ({ project, params }, { removal }) => await removal.delete(project, params.applicationId)
  })
  route({
    method: 'POST',
    url: `${one}/change-source`,
    group,
    operationId: 'ChangeApplicationSource',
    summary: 'Change Application Source',
    description:
      'Turns a git application into an image application, or back. Variables, limits, deploy hook and history stay; what belongs to the former source (address, branch, credentials, start command) goes.',
    problems: [...sourceProblems, problems.sameType, problems.notFound, refusedByGate, problems.hasPreviews],
    access: allow.token('write', { project: inApplication }),
    schema: { body: changeSourceBody, response: { 200: application } },
    audit: { action: 'change_application_source', resource: 'application', id },
    handler: async ({ project, params, body, caller }, { applications }) =>
      await applications.changeSource(project, params.applicationId, body, caller.user.id)
  })
  configurationRoutes(route)
  actionRoutes(route)
}
