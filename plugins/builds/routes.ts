import { inApplication } from 'busbar/api/applications'
import { engineProblems } from 'busbar/api/containers'
import { allow, pageOf, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Builds } from './builds.js'
import { buildEngineProblems } from './engines/engine-problems.js'
import { problems } from './problems.js'
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
    description: 'What clearing the cache would free.',
    problems: engineProblems,
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
    description: 'The next build uses nothing of earlier ones. What runs, and what a rollback needs, stays.',
    problems: [
      { ...problems.cacheBusy, message: 'a deployment of the application is in progress' },
      buildEngineProblems.notEmptied,
      ...engineProblems
    ],
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: statusResponse } },
    timeoutMs: 120_000,
    audit: { action: 'clear_build_cache', resource: 'application', id: { param: 'applicationId' } },
    handler: async ({ params }, { caches }) => await caches.clear(params)
  })
  route.list({
    url: '/api/builders',
    group,
    operationId: 'ListBuilders',
    summary: 'Get Builders',
    description:
      'The values that `build_type` may have for git applications, and which of them can be used here.',
    access: allow.token('read', { project: 'none' }),
    items: builderAnswer,
    handler: async ({ page }, { listBuilders }) => pageOf(page, await listBuilders())
  })
  deployKeyRoutes(route)
}
