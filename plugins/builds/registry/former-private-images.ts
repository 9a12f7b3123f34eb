import type { Database } from 'busbar/sdk'

/**
 * Images that earlier releases have let the engine pull with an account of an application: they still bear the names that
 * they were pulled by.
 */
export class FormerPrivateImages {
  constructor(private readonly db: Database) {}

  async isOfOthers(imageId: string, applicationId: string): Promise<boolean> {
    const rows = await this.db.sql<{ application_id: string }>(
      'select application_id from $schema.private_image where image_id = ?',
      [imageId]
    )
    return rows.length > 0 && !rows.some(row => row.application_id === applicationId)
  }
}
