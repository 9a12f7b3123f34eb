import type { Database } from 'busbar/sdk'
import type { DeploymentDirectory, DeploymentStatus, DeploymentSummary } from '../api.js'

/** What other plugins show of deployments. */
export class DeploymentSummaryStore implements DeploymentDirectory {
  constructor(private readonly db: Database) {}

  async describe(ids: readonly string[]): Promise<DeploymentSummary[]> {
    if (ids.length === 0) return []
    const rows = await this.db.sql<{
      readonly id: string
      readonly status: DeploymentStatus
      readonly triggered_by: string
      readonly commit_sha: string | null
      readonly started_at: Date
    }>(
      'select id, status, triggered_by, commit_sha, started_at from $schema.deployment where id = any(:ids)',
      { ids }
    )
    return rows.map(row => ({
      id: row.id,
      status: row.status,
      triggeredBy: row.triggered_by,
      commitSha: row.commit_sha,
      startedAt: row.started_at
    }))
  }

  async isRollingOut(applicationId: string): Promise<boolean> {
    const rows = await this.db.sql(
      "select from $schema.deployment where application_id = ? and status = 'deploying'",
      [applicationId]
    )
    return rows.length > 0
  }
}
