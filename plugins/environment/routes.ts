import { allow, list, readPage, reply, type ProjectId, type RouteDeclarer, wholeList } from 'busbar/sdk'
import type { Environment } from './index.js'
import { listQuery, mostBodyBytes, revealAnswer, updateBody, updatedAnswer, variable } from './schemas.js'
import type { VariableOwner } from './variable-store.js'

const project = '/api/projects/:projectId'
const application = `${project}/applications/:applicationId` as const
const inProject = { param: 'projectId' } as const
const chained = { param: 'projectId', chain: { applicationId: 'application' } } as const

const ofProject = (request: { project: ProjectId }): VariableOwner => ({ projectId: request.project, applicationId: null })
const ofApplication = (request: { project: ProjectId, params: { applicationId: string } }): VariableOwner =>
  ({ projectId: request.project, applicationId: request.params.applicationId })

export function routes (route: RouteDeclarer<Environment>) {
  projectRoutes(route)
  applicationRoutes(route)
}

function projectRoutes (route: RouteDeclarer<Environment>) {
  const group = 'Project Environment Variables'
  route({
    method: 'GET', url: `${project}/env`, group, summary: 'Get Variables',
    access: allow.token('read', { project: inProject }),
    schema: { query: listQuery, response: { 200: list(variable) } },
    handler: async (request, { variables }) => counted(await variables.list(ofProject(request), request.caller, readPage(request.query, wholeList)))
  })
  route({
    method: 'PUT', url: `${project}/env`, group, summary: 'Update Variables', bodyLimit: mostBodyBytes,
    access: allow.token('write', { project: inProject }),
    schema: { body: updateBody, response: { 200: updatedAnswer } },
    audit: { action: 'update_env_vars', resource: 'project', id: { param: 'projectId' } },
    handler: async (request, { variables }) => await variables.replace(ofProject(request), request.body.vars)
  })
  route({
    method: 'GET', url: `${project}/env/:envVarId/reveal`, group, summary: 'Reveal Project Env Var',
    access: allow.session({ project: inProject }),
    schema: { response: { 200: revealAnswer } },
    audit: { action: 'reveal_env_var', resource: 'project', id: { param: 'projectId' } },
    handler: async (request, { variables }) => await variables.reveal(ofProject(request), request.params.envVarId)
  })
}

function applicationRoutes (route: RouteDeclarer<Environment>) {
  const group = 'Application Environment Variables'
  route({
    method: 'GET', url: `${application}/env`, group, summary: 'Get Variables',
    access: allow.token('read', { project: chained }),
    schema: { query: listQuery, response: { 200: list(variable) } },
    handler: async (request, { variables }) => counted(await variables.list(ofApplication(request), request.caller, readPage(request.query, wholeList)))
  })
  route({
    method: 'PUT', url: `${application}/env`, group, summary: 'Update Variables', bodyLimit: mostBodyBytes,
    access: allow.token('write', { project: chained }),
    schema: { body: updateBody, response: { 200: updatedAnswer } },
    audit: { action: 'update_env_vars', resource: 'application', id: { param: 'applicationId' } },
    handler: async (request, { variables }) => await variables.replace(ofApplication(request), request.body.vars)
  })
  route({
    method: 'GET', url: `${application}/env/:envVarId/reveal`, group, summary: 'Reveal Env Var',
    access: allow.session({ project: chained }),
    schema: { response: { 200: revealAnswer } },
    audit: { action: 'reveal_env_var', resource: 'application', id: { param: 'applicationId' } },
    handler: async (request, { variables }) => await variables.reveal(ofApplication(request), request.params.envVarId)
  })
}

const counted = <T>({ rows, total }: { rows: T[], total: number }) => reply(200, rows, { headers: { 'X-Total-Count': String(total) } })
