import type { Database } from 'busbar/sdk'

/** As it is stored: null is as the environment has it; the keys are sealed. */
export interface RemoteRow {
  readonly enabled: boolean | null
  readonly endpoint: string | null
  readonly region: string | null
  readonly bucket: string | null
  readonly prefix: string | null
  readonly use_ssl: boolean | null
  readonly access_key: string | null
  readonly secret_key: string | null
}

export class RemoteStore {
  constructor(private readonly db: Database) {}

  async read(): Promise<RemoteRow | undefined> {
    const [row] = await this.db.sql<RemoteRow>(
      'select enabled, endpoint, region, bucket, prefix, use_ssl, access_key, secret_key from $schema.remote'
    )
    return row
  }

  async write(row: RemoteRow, updatedAt: Date): Promise<void> {
    await this.db.sql(
      `insert into $schema.remote (id, enabled, endpoint, region, bucket, prefix, use_ssl, access_key, secret_key, updated_at)
      values (true, :enabled, :endpoint, :region, :bucket, :prefix, :use_ssl, :access_key, :secret_key, :updated_at)
      on conflict (id) do update set enabled = excluded.enabled, endpoint = excluded.endpoint, region = excluded.region,
        bucket = excluded.bucket, prefix = excluded.prefix, use_ssl = excluded.use_ssl, access_key = excluded.access_key,
        secret_key = excluded.secret_key, updated_at = excluded.updated_at`,
      { ...row, updated_at: updatedAt }
    )
  }
}
