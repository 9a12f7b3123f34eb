import { inApplication } from 'busbar/api/applications'
import { extensionPoint, publishedTable, type ResourceTeardown } from 'busbar/sdk'

/** Volumes of applications, with those that are being deleted. Foreign keys to it are `on delete restrict`. */
export const volumeTable = publishedTable('volumes.volume', {
  key: 'id',
  columns: {
    id: 'uuid',
    application_id: 'uuid',
    /** The only one in its application. */
    name: 'text',
    /** Where the containers of the application have it. */
    mount_path: 'text',
    /** What it is called on the engine, where it is made by the first deploy that needs it. */
    engine_name: 'text',
    /** When its removal was asked for; null while it is there for users. */
    deleting_at: 'timestamptz null'
  }
})

/** The project rule of routes below `…/applications/:applicationId/volumes/:volumeId`: that volume, of that application, in that project. */
export const inVolume = {
  ...inApplication,
  chain: { ...inApplication.chain, volumeId: 'volume' }
} as const

/** What a plugin removes of a volume that is being deleted; of each one of a deleted application too. */
export const volumeTeardown = extensionPoint<ResourceTeardown>('volumes.teardown')
