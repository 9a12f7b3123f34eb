import { inApplication } from 'busbar/api/applications'

/** Where routes are that are about a database or a volume; the kinds are declared by the plugins that keep these. */
export const databaseUrl = '/api/projects/:projectId/databases/:databaseId'
export const inDatabase = { param: 'projectId', chain: { databaseId: 'database' } } as const
export const databaseGroup = 'Database Volumes & Backups'

export const applicationUrl = '/api/projects/:projectId/applications/:applicationId'
export const volumeUrl = '/api/projects/:projectId/applications/:applicationId/volumes/:volumeId'
export const inVolume = {
  ...inApplication,
  chain: { ...inApplication.chain, volumeId: 'volume' }
} as const
export const volumeGroup = 'Application Volumes & Backups'
