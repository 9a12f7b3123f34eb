import { inApplication } from 'busbar/api/applications'
import { allow, list, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Builds } from './builds.js'
import { builderAnswer, cacheAnswer } from './schemas.js'
import { deployKeyRoutes } from './ssh/deploy-key-routes.js'

const group = 'Application Resources'
const cache = '/api/projects/:projectId/applications/:applicationId/cache'

export function routes(route: RouteDeclarer<Builds>) {
  route({
    method: 'GET',
    url: cache,
    group,
    operationId: 'GetBuildCache',
    summary: 'Get Build Cache',
    access: allow.token('read', { project: inApplication }),
    schema: { response: { 200: cacheAnswer } },
    limit: { max: 30, windowSeconds: 60 },
    // The engine lists all its images and walks through all its volumes for this.
    timeoutMs: 120_000,
    handler: async ({ params }, { caches }) => await caches.read(params)
  })
  route({
    method: 'DELETE',
    url: cache,
    group,
    operationId: 'ClearBuildCache',
    summary: 'Clear Build Cache',
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: statusResponse } },
    timeoutMs: 120_000,
    audit: { action: 'clear_build_cache', resource: 'application', id: { param: 'applicationId' } },
    handler: async ({ params }, { caches }) => await caches.clear(params)
  })
  route({
    method: 'GET',
    url: '/api/builders',
    group,
    operationId: 'ListBuilders',
    summary: 'Get Builders',
    access: allow.token('read', { project: 'none' }),
    schema: { response: { 200: list(builderAnswer) } },
    handler: async (_request, { listBuilders }) => await listBuilders()
  })
  deployKeyRoutes(route)
}
