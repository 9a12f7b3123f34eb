import { inApplication } from 'busbar/api/applications'
import { mountPathProblems } from 'busbar/api/deployments'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import { inVolume } from './api.js'
import { problems } from './problems.js'
import { createBody, deletedAnswer, deleteQuery, volume } from './schemas.js'
import type { Volumes } from './volumes.js'

const group = 'Application Volumes & Backups'
const all = '/api/projects/:projectId/applications/:applicationId/volumes'

export function routes(route: RouteDeclarer<Volumes>): void {
  route.list({
    url: all,
    group,
    operationId: 'ListApplicationVolumes',
    summary: 'Get Volumes',
    description: 'The volumes of the application, by name, with what their files take.',
    items: volume,
    access: allow.token('read', { project: inApplication }),
    problems: [problems.applicationGone],
    handler: async ({ project, params, page }, { volumes }) =>
      await volumes.list(project, params.applicationId, page)
  })
  route({
    method: 'POST',
    url: all,
    group,
    operationId: 'CreateApplicationVolume',
    summary: 'Create Volume',
    description:
      'Adds a folder whose files outlive containers. The application is marked as changed (`pending_change`): its next deploy or reload makes the volume, with what the image has at that path, and mounts it. One of a name that was deleted without its data has them again. What is kept of backups of one of that name is its own again too.',
    problems: [
      ...mountPathProblems,
      problems.badName,
      problems.nameTaken,
      problems.nameLeaving,
      problems.tooMany,
      problems.applicationGone
    ],
    access: allow.token('write', { project: inApplication }),
    schema: { body: createBody, response: { 201: volume } },
    idempotent: true,
    audit: { action: 'create_volume', resource: 'volume', id: { result: 'id' } },
    handler: async ({ project, params, body }, { volumes }) =>
      await volumes.create(project, params.applicationId, body)
  })
  route({
    method: 'DELETE',
    url: `${all}/:volumeId`,
    group,
    operationId: 'DeleteApplicationVolume',
    summary: 'Delete Application Volume',
    description:
      'Takes the volume from the application, with the schedules of its backups. A container that has it keeps it until the next deploy or reload, and the answer has a `warning` then. Its files stay unless `delete_data` is `true`. Its backups are kept as orphaned ones, whatever becomes of its files, unless `delete_backups` is `true`; a `warning` says so where there are any.',
    problems: [problems.notFound],
    access: allow.session({ project: inVolume }),
    schema: { query: deleteQuery, response: { 200: deletedAnswer } },
    audit: { action: 'delete_volume', resource: 'volume', id: { param: 'volumeId' } },
    handler: async ({ project, params, query }, { volumes }) =>
      await volumes.delete(project, params.applicationId, params.volumeId, {
        deletesData: query.delete_data === 'true',
        deletesBackups: query.delete_backups === 'true'
      })
  })
}
