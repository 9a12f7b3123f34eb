import { inApplication } from 'busbar/api/applications'
import { allow, pagedList, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import { inDatabase } from '../api.js'
import type { Databases } from '../databases.js'
import { invalidField, onOne, problems } from '../problems.js'
import { attachment, attachmentBody } from '../schemas.js'

const group = 'Databases'
const all = '/api/projects/:projectId/databases/:databaseId/attachments'
const one = `${all}/:applicationId` as const
const both = { param: 'projectId', chain: { ...inDatabase.chain, ...inApplication.chain } } as const
const id = { param: 'databaseId' } as const

/** Which applications get the connection of a database as variables. */
export function attachmentRoutes(route: RouteDeclarer<Databases>) {
  route.list({
    url: all,
    group,
    operationId: 'ListDatabaseAttachments',
    summary: 'Get Attachments',
    description:
      'The applications that get the connection of the database as variables, in the order in which they were attached.',
    problems: onOne,
    items: attachment,
    page: pagedList,
    access: allow.token('read', { project: inDatabase }),
    handler: async ({ project, params, page }, { attachments }) =>
      await attachments.list(project, params.databaseId, page)
  })
  route({
    method: 'PUT',
    url: one,
    group,
    operationId: 'AttachDatabase',
    summary: 'Attach Database',
    description:
      'Containers of the application get these variables from their next deploy or reload on, in the place of those that it was attached by before. Variables of the application itself come before them, those of the project after them.',
    problems: [...onOne, invalidField, problems.applicationGone],
    access: allow.token('write', { project: both }),
    schema: { body: attachmentBody, response: { 200: statusResponse } },
    audit: { action: 'attach_database', resource: 'database', id },
    handler: async ({ project, params, body }, { attachments }) =>
      await attachments.attach(project, params.databaseId, params.applicationId, body.variables)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DetachDatabase',
    summary: 'Detach Database',
    description:
      'Containers of the application get the variables no more, from their next deploy or reload on. The database and its data stay.',
    problems: [...onOne, problems.notAttached],
    access: allow.token('write', { project: both }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'detach_database', resource: 'database', id },
    handler: async ({ project, params }, { attachments }) =>
      await attachments.detach(project, params.databaseId, params.applicationId)
  })
}
