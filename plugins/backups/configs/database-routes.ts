import { allow, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { databaseUrl, databaseGroup as group, inDatabase } from '../places.js'
import { problems } from '../problems.js'
import { configProblems, configRunProblems } from './config-problems.js'
import { configParams, databaseConfig, databaseConfigBody, databaseConfigOf } from './schemas.js'

const url = `${databaseUrl}/backup-configs` as const
const oneUrl = `${url}/:configId` as const

export function databaseConfigRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url,
    group,
    operationId: 'ListDatabaseBackupConfigs',
    summary: 'Get Configs',
    description: 'When backups of the database are made by themselves, the oldest schedule first.',
    access: allow.token('read', { project: inDatabase }),
    items: databaseConfig,
    handler: async ({ params, page }, { configs }) => {
      const { rows, total } = await configs.ofResource('database', params.databaseId, page)
      return { rows: rows.map(databaseConfigOf), total }
    }
  })
  route({
    method: 'POST',
    url,
    group,
    operationId: 'CreateDatabaseBackupConfig',
    summary: 'Create Config',
    description: 'Backups are made from now on, and the newest is restored as a proof once in a while.',
    problems: [...configProblems, problems.databasesUnknown, problems.databasesChoice],
    idempotent: true,
    access: allow.token('write', { project: inDatabase }),
    schema: { body: databaseConfigBody, response: { 201: databaseConfig } },
    audit: { action: 'create_backup_config', resource: 'backup_config', id: { result: 'id' } },
    handler: async ({ project, params, body }, { configs }) =>
      reply(201, databaseConfigOf(await configs.create(project, 'database', params.databaseId, body)))
  })
  route({
    method: 'PUT',
    url: oneUrl,
    group,
    operationId: 'UpdateDatabaseBackupConfig',
    summary: 'Update Config',
    description: 'What is left out stays as it is. Backups that there are stay where they are.',
    problems: [
      ...configProblems,
      problems.configNotFound,
      problems.databasesUnknown,
      problems.databasesChoice
    ],
    access: allow.token('write', { project: inDatabase }),
    schema: { params: configParams, body: databaseConfigBody, response: { 200: databaseConfig } },
    audit: { action: 'update_backup_config', resource: 'backup_config', id: { param: 'configId' } },
    handler: async ({ project, params, body }, { configs }) =>
      databaseConfigOf(await configs.update(project, 'database', params.databaseId, params.configId, body))
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteDatabaseBackupConfig',
    summary: 'Delete Config',
    description: 'The backups that it has made stay.',
    problems: [problems.configNotFound],
    access: allow.token('write', { project: inDatabase }),
    schema: { params: configParams, response: { 200: statusResponse } },
    audit: { action: 'delete_backup_config', resource: 'backup_config', id: { param: 'configId' } },
    handler: async ({ params }, { configs }) =>
      await configs.remove('database', params.databaseId, params.configId)
  })
  route({
    method: 'POST',
    url: `${oneUrl}/run`,
    group,
    operationId: 'RunDatabaseBackupConfig',
    summary: 'Run Config Backup',
    description: 'Makes a backup now as the schedule would, in the background.',
    problems: configRunProblems,
    idempotent: true,
    access: allow.token('write', { project: inDatabase }),
    schema: { params: configParams, response: { 202: statusResponse } },
    audit: { action: 'run_backup_config', resource: 'backup_config', id: { param: 'configId' } },
    handler: async ({ project, params }, { configs }) => {
      await configs.run(project, 'database', params.databaseId, params.configId)
      return reply(202, { status: 'running' })
    }
  })
}
