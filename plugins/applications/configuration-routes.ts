import { allow, type RouteDeclarer } from 'busbar/sdk'
import { inApplication } from './api.js'
import type { Applications } from './applications.js'
import { invalidField, problems } from './problems.js'
import {
  application,
  healthAnswer,
  healthCheckBody,
  resourcesBody,
  runtimeAnswer,
  runtimeBody,
  webhookBody,
  webhookSecretAnswer
} from './schemas.js'

const group = 'Application Resources'
const one = '/api/projects/:projectId/applications/:applicationId'
const id = { param: 'applicationId' } as const

/** How the container is made and checked, and what may trigger its deploys. */
export function configurationRoutes(route: RouteDeclarer<Applications>) {
  route({
    method: 'GET',
    url: `${one}/health`,
    group,
    operationId: 'GetApplicationHealth',
    summary: 'Get Health',
    description: 'How the health check of the latest deployment went, and how it goes now.',
    problems: [problems.notFound],
    access: allow.token('read', { project: inApplication }),
    schema: { response: { 200: healthAnswer } },
    handler: async ({ project, params }, { applications }) =>
      await applications.health(project, params.applicationId)
  })
  route({
    method: 'PUT',
    url: `${one}/health-check`,
    group,
    operationId: 'SetHealthCheck',
    summary: 'Set Health Check',
    description:
      'Replaces the whole check: what the body leaves out, or what belongs to another type, is cleared. The next deploy or reload applies it.',
    problems: [invalidField, problems.notFound],
    access: allow.token('write', { project: inApplication }),
    schema: { body: healthCheckBody, response: { 200: application } },
    audit: { action: 'set_health_check', resource: 'application', id },
    handler: async ({ project, params, body }, { applications }) =>
      await applications.setHealthCheck(project, params.applicationId, body)
  })
  route({
    method: 'PUT',
    url: `${one}/resources`,
    group,
    operationId: 'SetResources',
    summary: 'Set Resources',
    description: 'What the body leaves out stays. The next deploy or reload applies it.',
    problems: [invalidField, problems.notFound],
    access: allow.token('write', { project: inApplication }),
    schema: { body: resourcesBody, response: { 200: application } },
    audit: { action: 'set_resources', resource: 'application', id },
    handler: async ({ project, params, body }, { applications }) =>
      await applications.setResources(project, params.applicationId, body)
  })
  route({
    method: 'PUT',
    url: `${one}/runtime`,
    group,
    operationId: 'UpdateApplicationRuntime',
    summary: 'Update Runtime',
    description: 'What the body leaves out stays. The next deploy or reload applies it.',
    problems: [problems.notFound],
    access: allow.token('write', { project: inApplication }),
    schema: { body: runtimeBody, response: { 200: runtimeAnswer } },
    audit: { action: 'update_application_runtime', resource: 'application', id },
    handler: async ({ project, params, body }, { applications }) =>
      await applications.setRuntime(project, params.applicationId, body)
  })
  route({
    method: 'PUT',
    url: `${one}/webhook`,
    group: 'Application Deployments',
    operationId: 'UpdateApplicationWebhook',
    summary: 'Update Webhook',
    description: 'What the body leaves out stays.',
    problems: [problems.invalidBranch, problems.notFound],
    access: allow.token('write', { project: inApplication }),
    schema: { body: webhookBody, response: { 200: application } },
    audit: { action: 'update_application_webhook', resource: 'application', id },
    handler: async ({ project, params, body }, { applications }) =>
      await applications.setWebhook(project, params.applicationId, body)
  })
  route({
    method: 'GET',
    url: `${one}/webhook/reveal`,
    group: 'Application Deployments',
    operationId: 'RevealWebhookSecret',
    summary: 'Reveal Webhook Secret',
    description: 'The secret in clear. Each call is written to the audit log.',
    problems: [problems.notFound, problems.noWebhookSecret],
    access: allow.session({ project: inApplication }),
    schema: { response: { 200: webhookSecretAnswer } },
    audit: { action: 'reveal_webhook_secret', resource: 'application', id },
    handler: async ({ project, params }, { applications }) =>
      await applications.revealWebhookSecret(project, params.applicationId)
  })
}
