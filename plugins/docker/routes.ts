import { engineProblems } from 'busbar/api/containers'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { DockerPlugin } from './docker.js'
import { containerAnswer, imageAnswer, networkAnswer, overview, volumeAnswer } from './schemas.js'

const group = 'Docker (Admin)'
/** Of a pinned token those rows that belong to its projects. */
const access = allow.token('read', { role: 'admin', project: 'filtered' })
/** An engine with many thousands of things takes its time. */
const timeoutMs = 120_000
const common = { group, access, timeoutMs, problems: engineProblems } as const

export function routes(route: RouteDeclarer<DockerPlugin>): void {
  route({
    method: 'GET',
    url: '/api/docker/overview',
    group,
    operationId: 'GetDockerOverview',
    summary: 'Get Overview',
    description:
      'What the engine is, how many things are on it, and what they take of its disk. To measure that takes an engine long, so it is not waited for: `measured_at` says how old the figures are.',
    problems: engineProblems,
    access: allow.token('read', { role: 'admin', project: 'none' }),
    timeoutMs,
    schema: { response: { 200: overview } },
    handler: async (_request, { views }) => await views.overview()
  })
  route.list({
    ...common,
    url: '/api/docker/containers',
    operationId: 'ListDockerContainers',
    summary: 'Get Containers',
    description:
      'All containers of the engine, stopped and foreign ones too, the newest first. A pinned token sees those of its projects.',
    items: containerAnswer,
    handler: async ({ reach, page }, { views }) => await views.containers(reach, page)
  })
  route.list({
    ...common,
    url: '/api/docker/images',
    operationId: 'ListDockerImages',
    summary: 'Get Images',
    description:
      'All images of the engine, foreign ones too, the newest first. Steps of builds that an image continues are not listed. A pinned token sees those of its projects.',
    items: imageAnswer,
    handler: async ({ reach, page }, { views }) => await views.images(reach, page)
  })
  route.list({
    ...common,
    url: '/api/docker/networks',
    operationId: 'ListDockerNetworks',
    summary: 'Get Networks',
    description:
      'All networks of the engine by name, foreign ones too, each with the containers that are connected to it. A pinned token sees those of its projects.',
    items: networkAnswer,
    handler: async ({ reach, page }, { views }) => await views.networks(reach, page)
  })
  route.list({
    ...common,
    url: '/api/docker/volumes',
    operationId: 'ListDockerVolumes',
    summary: 'Get Volumes',
    description:
      'All volumes of the engine by name, foreign ones too. Sizes are those of the last measurement, see `GET /api/docker/overview`. A pinned token sees those of its projects.',
    items: volumeAnswer,
    handler: async ({ reach, page }, { views }) => await views.volumes(reach, page)
  })
}
