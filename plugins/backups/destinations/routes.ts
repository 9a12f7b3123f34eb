import { allow, pagedList, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { problems } from '../problems.js'
import { destination, destinationBody, destinationParams, trialAnswer, trialBody } from './schemas.js'

const group = 'Backup Destinations'
const url = '/api/projects/:projectId/backup-destinations'
const oneUrl = '/api/projects/:projectId/backup-destinations/:destId'
const inProject = { param: 'projectId' } as const
/** A store is asked by the platform, and may keep it waiting. */
const trialLimit = { max: 20, windowSeconds: 60 }
const refused = [
  problems.destinationField,
  problems.destinationKeys,
  problems.endpointInvalid,
  problems.prefixInvalid,
  problems.providerUnknown
]

export function destinationRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url,
    group,
    operationId: 'ListBackupDestinations',
    summary: 'Get Destinations',
    description: 'Where backups of the project may be kept, by name. The keys are in no answer.',
    access: allow.token('read', { project: inProject }),
    items: destination,
    page: pagedList,
    handler: async ({ project, page }, { destinations }) => await destinations.list(project, page)
  })
  route({
    method: 'POST',
    url,
    group,
    operationId: 'CreateBackupDestination',
    summary: 'Create Destination',
    description: 'A bucket, or a folder of this machine. Nothing is asked of it yet: see its test.',
    problems: [...refused, problems.projectGone, problems.destinationNameTaken, problems.tooManyDestinations],
    idempotent: true,
    access: allow.token('write', { project: inProject }),
    schema: { body: destinationBody, response: { 201: destination } },
    audit: { action: 'create_backup_destination', resource: 'backup_destination', id: { result: 'id' } },
    handler: async ({ project, body }, { destinations }) =>
      reply(201, await destinations.create(project, body))
  })
  route({
    method: 'PUT',
    url: oneUrl,
    group,
    operationId: 'UpdateBackupDestination',
    summary: 'Update Destination',
    description:
      'What is left out stays as it is. Provider, endpoint, bucket and what else says where it is are locked while backups are there. Stored keys are never sent to another host: where it moves they are given again.',
    problems: [
      ...refused,
      problems.destinationNotFound,
      problems.destinationNameTaken,
      problems.destinationLocked,
      problems.destinationKeysAgain
    ],
    access: allow.token('write', { project: inProject }),
    schema: { params: destinationParams, body: destinationBody, response: { 200: destination } },
    audit: { action: 'update_backup_destination', resource: 'backup_destination', id: { param: 'destId' } },
    handler: async ({ project, params, body }, { destinations }) =>
      await destinations.update(project, params.destId, body)
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteBackupDestination',
    summary: 'Delete Destination',
    description: 'Refused while schedules use it, or backups are there.',
    problems: [problems.destinationNotFound, problems.destinationInUse],
    access: allow.token('write', { project: inProject }),
    schema: { params: destinationParams, response: { 200: statusResponse } },
    audit: { action: 'delete_backup_destination', resource: 'backup_destination', id: { param: 'destId' } },
    handler: async ({ project, params }, { destinations }) =>
      await destinations.remove(project, params.destId)
  })
  trialRoutes(route)
}

function trialRoutes(route: RouteDeclarer<Backups>) {
  route({
    method: 'POST',
    url: `${oneUrl}/test`,
    group,
    operationId: 'TestBackupDestination',
    summary: 'Test Destination',
    description: 'Asks the place whether backups may be kept there with what is stored.',
    problems: [problems.destinationNotFound, problems.keysUnreadable, problems.providerUnknown],
    access: allow.token('write', { project: inProject }),
    schema: { params: destinationParams, response: { 200: trialAnswer } },
    limit: trialLimit,
    audit: { action: 'test_backup_destination', resource: 'backup_destination', id: { param: 'destId' } },
    handler: async ({ project, params, signal }, { destinations }) =>
      await destinations.test(project, params.destId, signal)
  })
  route({
    method: 'POST',
    url: `${url}/test`,
    group,
    operationId: 'TestBackupDestinationParams',
    summary: 'Test Configs',
    description:
      'The same of a destination that is not saved. With the `id` of one that is, what is left out is taken from it, its keys only where it is at the same host.',
    problems: [
      ...refused,
      problems.destinationNotFound,
      problems.destinationKeysAgain,
      problems.keysUnreadable
    ],
    access: allow.token('write', { project: inProject }),
    schema: { body: trialBody, response: { 200: trialAnswer } },
    limit: trialLimit,
    audit: { action: 'test_backup_destination', resource: 'backup_destination' },
    handler: async ({ project, body, signal }, { destinations }) =>
      await destinations.try(project, body, signal)
  })
}
