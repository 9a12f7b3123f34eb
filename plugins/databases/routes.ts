import { containerProblems, engineProblems } from 'busbar/api/containers'
import { allow, described, maybe, object, type RouteDeclarer, reply, statusResponse, Type } from 'busbar/sdk'
import { inDatabase } from './api.js'
import { attachmentRoutes } from './attachments/attachment-routes.js'
import type { Databases } from './databases.js'
import { invalidField, onOne, problems } from './problems.js'
import {
  createBody,
  credentialsAnswer,
  database,
  externalAccessBody,
  impactAnswer,
  updateBody,
  volumeAnswer
} from './schemas.js'
import { actionRoutes } from './servers/action-routes.js'
import { logRoutes } from './servers/log-routes.js'
import { upgradeRoutes } from './upgrades/upgrade-routes.js'

const group = 'Databases'
const all = '/api/projects/:projectId/databases'
const one = `${all}/:databaseId` as const
const inProject = { param: 'projectId' } as const
const ownersOnly = { ...inDatabase, owner: true } as const
const id = { param: 'databaseId' } as const

export function routes(route: RouteDeclarer<Databases>) {
  route.list({
    url: all,
    group,
    operationId: 'ListDatabases',
    summary: 'Get Databases',
    description: 'The databases of the project, the newest first.',
    items: database,
    access: allow.token('read', { project: inProject }),
    handler: async ({ project, page }, { databases }) => await databases.list(project, page)
  })
  route({
    method: 'POST',
    url: all,
    group,
    operationId: 'CreateDatabase',
    summary: 'Create Database',
    description:
      'Its container is made afterwards: `status` is `creating` until its server answers a query, and `status_detail` says what is being done. What is left out of `credentials` is chosen; `reveal` shows it.',
    problems: [invalidField, problems.unknownType, problems.projectGone],
    idempotent: true,
    access: allow.token('write', { project: inProject }),
    schema: { body: createBody, response: { 202: database } },
    bodyLimit: 512 * 1024,
    audit: { action: 'create_database', resource: 'database', id: { result: 'id' } },
    handler: async ({ project, body }, { databases }) => reply(202, await databases.create(project, body))
  })
  route({
    method: 'GET',
    url: one,
    group,
    operationId: 'GetDatabase',
    summary: 'Get Database',
    problems: onOne,
    access: allow.token('read', { project: inDatabase }),
    schema: { response: { 200: database } },
    handler: async ({ project, params }, { databases }) => await databases.get(project, params.databaseId)
  })
  route({
    method: 'PUT',
    url: one,
    group,
    operationId: 'UpdateDatabase',
    summary: 'Update Database',
    description:
      'Sets its limits. They hold from now on, in the container that runs too, which is not started anew.',
    problems: [...onOne, invalidField, problems.containersOff, ...containerProblems],
    access: allow.token('write', { project: inDatabase }),
    schema: { body: updateBody, response: { 200: database } },
    audit: { action: 'update_database', resource: 'database', id },
    handler: async ({ project, params, body }, { databases }) =>
      await databases.update(project, params.databaseId, body)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DeleteDatabase',
    summary: 'Delete Database',
    description:
      'The database is out of reach at once; its container and its volume are removed afterwards, which cannot be undone. Its backups are kept as orphaned ones unless `delete_backups` is `true`.',
    problems: [problems.notFound],
    access: allow.session({ project: ownersOnly }),
    schema: {
      query: object({
        delete_backups: described(
          maybe(Type.String({ examples: ['true'] })),
          '`true`: its backups are erased too. They are kept unless given.'
        )
      }),
      response: { 200: statusResponse }
    },
    audit: { action: 'delete_database', resource: 'database', id },
    handler: async ({ project, params, query }, { removal }) =>
      await removal.delete(project, params.databaseId, { deleteBackups: query.delete_backups === 'true' })
  })
  route({
    method: 'GET',
    url: `${one}/deletion-impact`,
    group,
    operationId: 'GetDatabaseDeletionImpact',
    summary: 'Get Deletion Impact',
    description: 'Which backups of the database there are: they are left, or go, when it is deleted.',
    problems: onOne,
    access: allow.token('read', { project: inDatabase }),
    schema: { response: { 200: impactAnswer } },
    handler: async ({ project, params }, { impact }) => await impact.of(project, params.databaseId)
  })
  route({
    method: 'GET',
    url: `${one}/credentials/reveal`,
    group,
    operationId: 'RevealDatabaseCredentials',
    summary: 'Reveal Database Credentials',
    description:
      'The credentials in clear, and the address by which applications of the project sign in. Each call is written to the audit log.',
    problems: [...onOne, problems.unreadable],
    access: allow.session({ project: inDatabase }),
    schema: { response: { 200: credentialsAnswer } },
    audit: { action: 'reveal_database_credentials', resource: 'database', id },
    handler: async ({ project, params }, { databases }) => await databases.reveal(project, params.databaseId)
  })
  route({
    method: 'POST',
    url: `${one}/external-access`,
    group,
    operationId: 'SetDatabaseExternalAccess',
    summary: 'Set External Access',
    description:
      'Opens a port of 127.0.0.1 of the machine that leads to the database, or closes it, with the connections that came by it. Its container goes on undisturbed. Reach the port by a tunnel of SSH. Where the platform runs in a container whose ports the machine does not have, it is refused.',
    problems: [
      ...onOne,
      problems.busy,
      problems.notRunning,
      problems.noExternalAccess,
      problems.noBindAddress,
      problems.containersOff,
      ...engineProblems
    ],
    access: allow.token('write', { project: inDatabase }),
    idempotent: true,
    schema: { body: externalAccessBody, response: { 202: statusResponse } },
    audit: { action: 'set_database_external_access', resource: 'database', id },
    handler: async ({ project, params, body }, { control }) =>
      reply(202, await control.setExternal(project, params.databaseId, body.enabled))
  })
  route({
    method: 'GET',
    url: `${one}/volume`,
    group: 'Database Volumes & Backups',
    operationId: 'GetDatabaseVolume',
    summary: 'Get Volume',
    description: 'The volume with the data of the database, measured now.',
    problems: [...onOne, problems.containersOff],
    access: allow.token('read', { project: inDatabase }),
    schema: { response: { 200: volumeAnswer } },
    handler: async ({ project, params }, { databases }) => await databases.volume(project, params.databaseId)
  })
  actionRoutes(route)
  attachmentRoutes(route)
  logRoutes(route)
  upgradeRoutes(route)
}
