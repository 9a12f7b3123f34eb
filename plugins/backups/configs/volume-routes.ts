import { inApplication } from 'busbar/api/applications'
import { allow, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { applicationUrl, volumeGroup as group, inVolume, volumeUrl } from '../places.js'
import { problems } from '../problems.js'
import { configProblems, configRunProblems } from './config-problems.js'
import {
  applicationVolumeConfig,
  applicationVolumeConfigOf,
  configParams,
  volumeConfig,
  volumeConfigBody,
  volumeConfigOf
} from './schemas.js'

const url = `${volumeUrl}/backup-configs` as const
const oneUrl = `${url}/:configId` as const

export function volumeConfigRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url: `${applicationUrl}/volume-backup-configs`,
    group,
    operationId: 'ListBackupConfigsForApplication',
    summary: 'Get Configs for an App',
    description: 'The schedules of all volumes of the application, the oldest first.',
    access: allow.token('read', { project: inApplication }),
    items: applicationVolumeConfig,
    handler: async ({ params, page }, { configs }) => {
      const { rows, total } = await configs.ofApplication(params.applicationId, page)
      return { rows: rows.map(applicationVolumeConfigOf), total }
    }
  })
  route.list({
    url,
    group,
    operationId: 'ListBackupConfigsForVolume',
    summary: 'Get Configs for a Volume',
    description: 'When backups of the volume are made by themselves, the oldest schedule first.',
    access: allow.token('read', { project: inVolume }),
    items: volumeConfig,
    handler: async ({ params, page }, { configs }) => {
      const { rows, total } = await configs.ofResource('volume', params.volumeId, page)
      return { rows: rows.map(volumeConfigOf), total }
    }
  })
  route({
    method: 'POST',
    url,
    group,
    operationId: 'CreateVolumeBackupConfig',
    summary: 'Create Config',
    description: 'Backups are made from now on, and the newest is restored as a proof once in a while.',
    problems: configProblems,
    idempotent: true,
    access: allow.token('write', { project: inVolume }),
    schema: { body: volumeConfigBody, response: { 201: volumeConfig } },
    audit: { action: 'create_volume_backup_config', resource: 'volume_backup_config', id: { result: 'id' } },
    handler: async ({ project, params, body }, { configs }) =>
      reply(201, volumeConfigOf(await configs.create(project, 'volume', params.volumeId, body)))
  })
  route({
    method: 'PUT',
    url: oneUrl,
    group,
    operationId: 'UpdateVolumeBackupConfig',
    summary: 'Update Config',
    description: 'What is left out stays as it is. Backups that there are stay where they are.',
    problems: [...configProblems, problems.configNotFound],
    access: allow.token('write', { project: inVolume }),
    schema: { params: configParams, body: volumeConfigBody, response: { 200: volumeConfig } },
    audit: {
      action: 'update_volume_backup_config',
      resource: 'volume_backup_config',
      id: { param: 'configId' }
    },
    handler: async ({ project, params, body }, { configs }) =>
      volumeConfigOf(await configs.update(project, 'volume', params.volumeId, params.configId, body))
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteVolumeBackupConfig',
    summary: 'Delete Config',
    description: 'The backups that it has made stay.',
    problems: [problems.configNotFound],
    access: allow.token('write', { project: inVolume }),
    schema: { params: configParams, response: { 200: statusResponse } },
    audit: {
      action: 'delete_volume_backup_config',
      resource: 'volume_backup_config',
      id: { param: 'configId' }
    },
    handler: async ({ params }, { configs }) =>
      await configs.remove('volume', params.volumeId, params.configId)
  })
  route({
    method: 'POST',
    url: `${oneUrl}/run`,
    group,
    operationId: 'RunVolumeBackupConfig',
    summary: 'Run Config Backup',
    description: 'Makes a backup now as the schedule would, in the background.',
    problems: configRunProblems,
    idempotent: true,
    access: allow.token('write', { project: inVolume }),
    schema: { params: configParams, response: { 202: statusResponse } },
    audit: { action: 'run_volume_backup', resource: 'volume_backup_config', id: { param: 'configId' } },
    handler: async ({ project, params }, { configs }) => {
      await configs.run(project, 'volume', params.volumeId, params.configId)
      return reply(202, { status: 'running' })
    }
  })
}
