import { allow, type RouteDeclarer } from 'busbar/sdk'
import { inApplication } from './api.js'
import type { Applications } from './applications.js'
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
    access: allow.session({ project: inApplication }),
    schema: { response: { 200: webhookSecretAnswer } },
    audit: { action: 'reveal_webhook_secret', resource: 'application', id },
    handler: async ({ project, params }, { applications }) =>
      await applications.revealWebhookSecret(project, params.applicationId)
  })
}
