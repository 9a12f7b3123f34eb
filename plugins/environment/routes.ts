import { inApplication } from 'busbar/api/applications'
import { allow, type ProjectId, type RouteDeclarer } from 'busbar/sdk'
import type { Environment } from './environment.js'
import { problems } from './problems.js'
import { mostBodyBytes, revealAnswer, revealParams, updateBody, updatedAnswer, variable } from './schemas.js'
import type { VariableOwner } from './variable-store.js'

const project = '/api/projects/:projectId'
const application = `${project}/applications/:applicationId` as const
const inProject = { param: 'projectId' } as const

const ofProject = (request: { project: ProjectId }): VariableOwner => ({
  projectId: request.project,
  applicationId: null
})
const ofApplication = (request: {
  project: ProjectId
  params: { applicationId: string }
}): VariableOwner => ({ projectId: request.project, applicationId: request.params.applicationId })

const setProblems = [
  problems.badKey,
  problems.duplicate,
  problems.noValue,
  problems.notStored,
  problems.staysSecret,
  problems.tooLong,
  problems.nul,
  problems.ownerGone
]
const revealProblems = [problems.notFound, problems.unreadable]

export function routes(route: RouteDeclarer<Environment>) {
  projectRoutes(route)
  applicationRoutes(route)
}

function projectRoutes(route: RouteDeclarer<Environment>) {
  const group = 'Project Environment Variables'
  route.list({
    url: `${project}/env`,
    group,
    operationId: 'ListProjectEnvVars',
    summary: 'Get Variables',
    description:
      'The variables of the project, which all of its applications get. A token sees no values, a session those that are not secret.',
    problems: [problems.ownerGone],
    items: variable,
    access: allow.token('read', { project: inProject }),
    handler: async (request, { variables }) =>
      await variables.list(ofProject(request), request.caller, request.page)
  })
  route({
    method: 'PUT',
    url: `${project}/env`,
    group,
    operationId: 'UpdateProjectEnvVars',
    summary: 'Update Variables',
    description:
      'Replaces the whole set: a variable that the body does not name is deleted. Running containers keep what they were started with until they are deployed or reloaded.',
    problems: setProblems,
    bodyLimit: mostBodyBytes,
    access: allow.token('write', { project: inProject }),
    schema: { body: updateBody, response: { 200: updatedAnswer } },
    audit: { action: 'update_env_vars', resource: 'project', id: { param: 'projectId' } },
    handler: async (request, { variables }) => await variables.replace(ofProject(request), request.body.vars)
  })
  route({
    method: 'GET',
    url: `${project}/env/:envVarId/reveal`,
    group,
    operationId: 'RevealProjectEnvVar',
    summary: 'Reveal Project Env Var',
    description: 'The value in clear, secret or not. Each call is written to the audit log.',
    problems: revealProblems,
    access: allow.session({ project: inProject }),
    schema: { params: revealParams, response: { 200: revealAnswer } },
    audit: { action: 'reveal_env_var', resource: 'project', id: { param: 'projectId' } },
    handler: async (request, { variables }) =>
      await variables.reveal(ofProject(request), request.params.envVarId)
  })
}

function applicationRoutes(route: RouteDeclarer<Environment>) {
  const group = 'Application Environment Variables'
  route.list({
    url: `${application}/env`,
    group,
    operationId: 'ListEnvVars',
    summary: 'Get Variables',
    description:
      "The variables of the application itself, which take the place of the project's of the same name. A token sees no values, a session those that are not secret.",
    problems: [problems.ownerGone],
    items: variable,
    access: allow.token('read', { project: inApplication }),
    handler: async (request, { variables }) =>
      await variables.list(ofApplication(request), request.caller, request.page)
  })
  route({
    method: 'PUT',
    url: `${application}/env`,
    group,
    operationId: 'UpdateEnvVars',
    summary: 'Update Variables',
    description:
      'Replaces the whole set: a variable that the body does not name is deleted. The application is marked as changed (`pending_change`); its container keeps what it was started with until a deploy or reload.',
    problems: setProblems,
    bodyLimit: mostBodyBytes,
    access: allow.token('write', { project: inApplication }),
    schema: { body: updateBody, response: { 200: updatedAnswer } },
    audit: { action: 'update_env_vars', resource: 'application', id: { param: 'applicationId' } },
    handler: async (request, { variables }) =>
      await variables.replace(ofApplication(request), request.body.vars)
  })
  route({
    method: 'GET',
    url: `${application}/env/:envVarId/reveal`,
    group,
    operationId: 'RevealEnvVar',
    summary: 'Reveal Env Var',
    description: 'The value in clear, secret or not. Each call is written to the audit log.',
    problems: revealProblems,
    access: allow.session({ project: inApplication }),
    schema: { params: revealParams, response: { 200: revealAnswer } },
    audit: { action: 'reveal_env_var', resource: 'application', id: { param: 'applicationId' } },
    handler: async (request, { variables }) =>
      await variables.reveal(ofApplication(request), request.params.envVarId)
  })
}
